// What the JavaScript client scripts share: a check that counts, and settings from the environment.

export const need = (name) => {
  const value = process.env[name];
  if (!value) {
    console.error(`${name} is not set`);
    process.exit(2);
  }
  return value;
};

let passed = 0;
let failed = 0;

export async function check(name, run) {
  try {
    const said = await run();
    passed += 1;
    console.log(`ok ${name}${said === undefined ? "" : `: ${said}`}`);
    return said;
  } catch (error) {
    failed += 1;
    console.log(`not ok ${name}: ${error?.stack ?? error}`);
    return undefined;
  }
}

export function equal(actual, expected, what = "value") {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`);
}

/** What the first call of the callback given to `listen` was told; fails after ten seconds of silence. */
export function once(listen) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("nothing was heard")), 10_000);
    listen((said) => {
      clearTimeout(late);
      resolve(said);
    });
  });
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}
