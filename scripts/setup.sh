#!/usr/bin/env bash
# Installs what the tests and the demo need and this machine lacks, or names it.
# Needs a Rust toolchain and Node.js 20 or newer; everything else it brings itself on a Debian-like machine with root.
set -euo pipefail
cd "$(dirname "$0")/.."

# `setup.sh demo` installs what `make demo` uses: the node alone.
purpose=${1:-all}

missing=()
have() { command -v "$1" >/dev/null 2>&1; }

finish() {
  if [ "${#missing[@]}" -gt 0 ]; then
    echo "setup: missing on this machine:" >&2
    printf '  - %s\n' "${missing[@]}" >&2
    exit 1
  fi
}

if [ "$purpose" = demo ]; then
  have cargo || missing+=("a Rust toolchain (cargo), https://rustup.rs")
  packages=(tests/clients/node_modules/@foundry-rs/anvil-*/bin/anvil target/demo/node_modules/@foundry-rs/anvil-*/bin/anvil)
  if ! have anvil && ! compgen -G "${packages[0]}" >/dev/null && ! compgen -G "${packages[1]}" >/dev/null; then
    version=$(sed -n 's/.*"@foundry-rs\/anvil": "\(.*\)".*/\1/p' tests/clients/package.json)
    echo "setup: installing the node (anvil $version)"
    mkdir -p target/demo
    if ! have npm || ! npm install --prefix target/demo --no-audit --no-fund --loglevel=error "@foundry-rs/anvil@$version"; then
      missing+=("anvil, a development node: https://getfoundry.sh, or npm to install it here")
    fi
  fi
  finish
  exit 0
fi

have cargo || missing+=("a Rust toolchain (cargo), https://rustup.rs")
have node || missing+=("Node.js 20 or newer (node)")
have npm || missing+=("npm, which comes with Node.js")

# Debian packages by what they bring. PostgreSQL keeps its server programs off the PATH.
packages=()
have_postgres() { have initdb || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; }
have_postgres || packages+=(postgresql)
have redis-server || packages+=(redis-server)
have nginx || packages+=(nginx-light)
have wrk || packages+=(wrk)
have python3 || packages+=(python3)
# What the pages of docs/ are typed with.
have bash || packages+=(bash)
have curl || packages+=(curl)
have jq || packages+=(jq)
have openssl || packages+=(openssl)
have psql || packages+=(postgresql-client)
# The sign-in page is looked at in a real browser.
have chromium || packages+=(chromium)
python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3-venv)
if [ "${#packages[@]}" -gt 0 ]; then
  if have apt-get && [ "$(id -u)" -eq 0 ]; then
    echo "setup: installing ${packages[*]}"
    # The packages start services of their own; tests start private ones, so these are kept from starting.
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d.ledger-gateway
    if [ ! -e /usr/sbin/policy-rc.d ]; then
      install -m 755 /usr/sbin/policy-rc.d.ledger-gateway /usr/sbin/policy-rc.d
      trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    rm -f /usr/sbin/policy-rc.d.ledger-gateway
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
      missing+=("Debian packages: ${packages[*]} (apt-get failed)")
  else
    missing+=("Debian packages: ${packages[*]} (run as root, or install them)")
  fi
fi

# A stamp holds what was installed: the list's own digest, as times change with every checkout.
is_stamped() { [ "$(cat "$1" 2>/dev/null)" = "$(cksum <"$2")" ]; }

# Installs the npm packages of a folder at the versions of its lock file.
install_npm() {
  local folder=$1 lock=$1/package-lock.json stamp=$1/node_modules/.installed
  if have npm && ! is_stamped "$stamp" "$lock"; then
    echo "setup: installing the npm packages of $folder"
    if (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error); then
      cksum <"$lock" >"$stamp"
    else
      missing+=("npm packages of $folder (npm ci failed)")
    fi
  fi
}

# A real node, the client libraries, the wallet that proves logins, a certified OpenID provider, and the tools of the API document.
for folder in tests/clients tests/wallet tests/directory tests/openapi; do install_npm "$folder"; done

# Hardhat 3 takes Node.js 22.13 and newer, and npm leaves out its parts under an older one: then it gets one of its own.
system_path=$PATH
if have node && ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 13) ? 0 : 1)'; then
  install_npm tests/nodes/runtime
  for own in "$PWD"/tests/nodes/runtime/node_modules/node-*/bin; do PATH=$own:$PATH; done
fi
install_npm tests/nodes
PATH=$system_path

# web3.py and a validator of the API document, in an environment of its own.
list=tests/clients/requirements.txt
venv=target/venv
if have python3 && ! is_stamped "$venv/installed" "$list"; then
  echo "setup: installing the Python packages"
  mkdir -p target
  if python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$list"; then
    cksum <"$list" >"$venv/installed"
  else
    missing+=("Python packages of $list (pip failed)")
  fi
fi

finish
