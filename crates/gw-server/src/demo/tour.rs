//! The texts that the demo prints: the personas, one query by three viewers, and commands to try.

use super::{
    cast::Persona,
    client::{As, Client},
    disclosure, explorer,
    parts::Running,
    seed::{Scene, balance_of},
};
use alloy_primitives::U256;
use serde_json::{Value, json};

/// The personas that query the balances and the blocks.
pub(super) const VIEWERS: [Persona; 3] = [Persona::Ops, Persona::Analyst, Persona::Trader];
/// The personas whose balances are queried.
const OWNERS: [Persona; 2] = [Persona::Analyst, Persona::Ops];

/// Prints a text to standard output.
pub(super) fn say(text: impl core::fmt::Display) {
    crate::terminal::say(text);
}

/// Prints the whole tour.
pub(super) async fn print(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    print_personas(running, scene)?;
    print_balances(running, scene).await?;
    explorer::print_blocks(running, scene).await?;
    disclosure::print_transaction(running, scene).await?;
    print_commands(running, scene)?;
    say(format_args!(
        "\nGateway {}   node behind it {}   token contract {:#x}\nA fresh token: {} demo token <{}>\nCtrl-C stops \
         everything.\n",
        running.gateway,
        running.node,
        scene.token,
        std::env::args()
            .next()
            .unwrap_or_else(|| "ledger-gateway-dev".to_owned()),
        Persona::ALL.map(Persona::word).join("|"),
    ));
    Ok(())
}

fn print_personas(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    say("\nWho is who (tokens last 8 hours)\n");
    for persona in Persona::ALL {
        say(format_args!(
            "  {:17} {:26} {:#x}\n",
            persona.title(),
            running.names.did(persona),
            persona.address()?
        ));
    }
    say("\n");
    for persona in Persona::ALL {
        say(format_args!(
            "export {}={}\n",
            variable(persona),
            scene.bearer(persona)?
        ));
    }
    Ok(())
}

/// Queries the balances as each viewer and prints the results in a table.
async fn print_balances(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    let client = Client::new(&running.gateway);
    say("\nThe same question, three viewers: how many tokens does … hold?\n");
    say(format_args!("  {:22}", ""));
    for viewer in VIEWERS {
        say(format_args!("{:>20}", viewer.title()));
    }
    for owner in OWNERS {
        say(format_args!("\n  {:22}", owner.title()));
        for viewer in VIEWERS {
            let call = json!([{"to": scene.token, "data": balance_of(owner.address()?)}, "latest"]);
            let response = client
                .call(As::Bearer(scene.bearer(viewer)?), "/rpc", "eth_call", call)
                .await?;
            let tokens = response
                .json()
                .get("result")
                .and_then(Value::as_str)
                .and_then(|text| text.parse::<U256>().ok());
            let shown = match tokens {
                Some(units) => (units / super::seed::whole(1)).to_string(),
                None => format!("{} not found", response.status.as_u16()),
            };
            say(format_args!("{shown:>20}"));
        }
    }
    say("\n");
    Ok(())
}

/// Prints commands to copy.
fn print_commands(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    let (rpc, token, owner) = (
        format!("{}/rpc", running.gateway),
        scene.token,
        Persona::Analyst.address()?,
    );
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{{"to":"{token}","data":"{}"}},"latest"]}}"#,
        balance_of(owner)
    );
    for viewer in VIEWERS {
        let bearer = variable(viewer);
        say(format_args!("\n# {} asks for the analyst's balance\n", viewer.title()));
        say(format_args!(
            "curl -s {rpc} -H \"Authorization: Bearer ${bearer}\" -H 'Content-Type: application/json' -d '{body}'\n"
        ));
        say(format_args!(
            "cast call --rpc-url {rpc} --rpc-headers \"Authorization: Bearer ${bearer}\" {token} \
             'balanceOf(address)(uint256)' {owner}\n"
        ));
    }
    let viewer = variable(Persona::Analyst);
    say(format_args!(
        "\n// ethers 6, node --input-type=module, in tests/clients after `scripts/setup.sh`\n\
         import {{ Contract, FetchRequest, JsonRpcProvider }} from \"ethers\";\n\
         const request = new FetchRequest(\"{rpc}\");\n\
         request.setHeader(\"Authorization\", `Bearer ${{process.env.{viewer}}}`);\n\
         const token = new Contract(\"{token}\", [\"function balanceOf(address) view returns (uint256)\"], new \
         JsonRpcProvider(request));\n\
         console.log(await token.balanceOf(\"{owner}\"));\n\
         \n// viem, the same\n\
         import {{ createPublicClient, http, parseAbi }} from \"viem\";\n\
         const client = createPublicClient({{ transport: http(\"{rpc}\", {{ fetchOptions: {{ headers: {{ \
         Authorization: `Bearer ${{process.env.{viewer}}}` }} }} }}) }});\n\
         console.log(await client.readContract({{ address: \"{token}\", abi: parseAbi([\"function balanceOf(address) \
         view returns (uint256)\"]), functionName: \"balanceOf\", args: [\"{owner}\"] }}));\n",
    ));
    Ok(())
}

/// The shell variable that holds a persona's token.
fn variable(persona: Persona) -> String {
    persona.word().to_uppercase()
}
