// The sign-in page: shows the QR code for the wallet, waits for the login, and redirects. It calls only this service.
'use strict';

const page = document.documentElement.dataset;
const root = new URL(page.root, document.baseURI);
const at = (path) => new URL(path, root).href;
const $ = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);

/** The maximum number of polls of one login, and how many of them are frequent: together they cover its ten minutes. */
const POLLS = 150;
const QUICK = 100;
const KEEP = 'ledger-gateway.directory';

const REASONS = {
  invalid_request: 'Your wallet sent something we could not read. Update the wallet app, then scan the code again.',
  verification_failed: 'The proof from your wallet could not be verified. Scan the code again.',
  humanity_required: 'Signing in here needs a proof-of-humanity credential, and your wallet did not bring one. Get the credential, then scan the code again.',
  network_not_supported: 'Your wallet’s identity lives on a network that is not accepted here. Choose another identity in the wallet, then scan the code again.',
  authentication_failed: 'You could not be signed in. Try again, and if it keeps failing, ask whoever runs this service.',
};

let run = 0; // Incremented by each new login, so that responses for older ones are ignored.
let timer = 0;
let token = '';

function say(text, kind = 'busy') {
  const status = $('status');
  if (status.textContent !== text) status.textContent = text;
  status.dataset.kind = kind;
}

function head(title, lead = true) {
  $('title').textContent = title;
  document.title = title;
  show('lead', lead);
}

const show = (id, yes = true) => { $(id).hidden = !yes; };

async function call(method, path, body, headers = {}) {
  const answer = await fetch(at(path), {
    method,
    credentials: 'same-origin',
    cache: 'no-store',
    headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const json = await answer.json().catch(() => ({}));
  return { status: answer.status, json, headers: answer.headers };
}

/** Redirects to an address from the server, if it is a web address. */
function leave(url) {
  const to = new URL(url, root);
  if (to.protocol === 'https:' || to.protocol === 'http:') location.replace(to.href);
}

function clock(seconds) {
  const left = Math.max(0, Math.floor(seconds));
  return `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
}

function countDown(id, end, over) {
  clearInterval(timer);
  const tick = () => {
    const left = (end - Date.now()) / 1000;
    $(id).textContent = clock(left);
    if (left <= 0) { clearInterval(timer); over(); }
  };
  timer = setInterval(tick, 1000);
  tick();
}

function pause(ms) {
  return new Promise((go) => {
    const done = () => { clearTimeout(wait); document.removeEventListener('visibilitychange', seen); go(); };
    const seen = () => { if (!document.hidden) done(); };
    const wait = setTimeout(() => { if (!document.hidden) done(); }, ms);
    // A hidden page does not poll. It polls at once when it becomes visible.
    document.addEventListener('visibilitychange', seen);
  });
}

function stop(text, retry) {
  run += 1;
  clearInterval(timer);
  show('scan', false);
  show('again', retry);
  show('more', retry);
  say(text, 'bad');
  if (retry) $('again').focus();
}

/** Shows the request as a QR code and as a link, with the code that the wallet shows, too. */
function present(request, session) {
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const link = `iden3comm://?i_m=${btoa(String.fromCharCode(...bytes))}`;
  $('qr').src = at(`auth/session/${encodeURIComponent(session)}/qr.svg`);
  $('open').href = link;
  $('copy').onclick = () => copy($('copy'), link);
  const code = /code (\d\d)$/.exec(request.body.reason);
  $('code').textContent = code ? code[1] : '–';
  show('scan');
  show('again', false);
  say('Waiting for your wallet …');
  // Uses the lifetime, not the expiry time: the clock of this machine may differ from the server's.
  const life = Math.min(600, Math.max(0, request.expires_time - request.created_time)) * 1000;
  countDown('left', Date.now() + life, () => stop('This code has expired.', !query.has('oauth_session')));
}

async function copy(button, text) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Copying is not possible here';
  }
  setTimeout(() => { button.textContent = label; }, 2500);
}

/** Polls `path` until the login is completed. Rejections are shown, and polling goes on: the login may still succeed. */
async function poll(path, headers, completed) {
  const mine = run;
  let polls = 0;
  while (polls < POLLS) {
    await pause(polls < QUICK ? 2000 : 8000);
    if (mine !== run) return;
    polls += 1;
    let answer;
    try {
      answer = await call('GET', path, undefined, headers);
    } catch {
      say('No connection. Trying again …', 'bad');
      continue;
    }
    if (mine !== run) return;
    if (answer.status === 401 || answer.status === 404) return gone();
    if (answer.status !== 200) { say('The service does not answer as expected. Trying again …', 'bad'); continue; }
    if (answer.json.completed) return completed(answer.json);
    credential(answer.json.verify_url);
    if (answer.json.failed) say(REASONS[answer.json.reason] ?? REASONS.authentication_failed, 'bad');
    else say('Waiting for your wallet …');
  }
  gone();
}

/** Shows the link to get the missing credential. */
function credential(url) {
  show('credential', Boolean(url));
  if (url) $('credential').href = url;
}

function gone() {
  if (query.has('oauth_session')) stop('This sign-in has ended. Go back to the application and start again.', false);
  else stop('This sign-in has ended.', true);
}

/** Finishes a login that no OAuth application waits for. */
function signedIn(tokens) {
  run += 1;
  clearInterval(timer);
  const back = query.get('return') ?? '';
  // Only paths of this origin are allowed.
  if (/^\/(?![/\\])/.test(back) && new URL(back, location.origin).origin === location.origin) {
    say('Signed in. Taking you back …', 'good');
    leave(new URL(back, location.origin).href);
    return;
  }
  token = tokens.access_token;
  show('scan', false);
  show('more', false);
  show('done');
  head('Signed in', false);
  say('You are signed in.', 'good');
  $('copy-token').onclick = () => copy($('copy-token'), token);
  $('copy-token').focus();
  countDown('token-left', Date.now() + tokens.expires_in * 1000, () => {
    token = '';
    show('done', false);
    show('more');
    stop('Your access token has ended.', true);
  });
}

async function login() {
  run += 1;
  head('Sign in');
  say('Preparing your sign-in …');
  show('again', false);
  const { status, json, headers } = await call('POST', 'api/v1/auth/request', { callback_origin: location.origin });
  if (status === 429) return stop('Too many sign-ins from your network. Wait a minute, then try again.', true);
  if (status !== 200) return stop('Signing in is not possible at the moment. Try again in a minute.', true);
  present(json.auth_request, json.session_id);
  const secret = headers.get('x-login-secret');
  poll(`api/v1/auth/session/${encodeURIComponent(json.session_id)}/status`, secret ? { 'x-login-secret': secret } : {},
    (answer) => signedIn(answer.tokens));
}

/** Shows the user and the application, and waits for the user's confirmation. */
function confirm(client, did, go, other) {
  show('scan', false);
  show('more', false);
  show('confirm');
  head('Continue?', false);
  say(`Go on to ${client}?`, 'good');
  $('confirm-client').textContent = client;
  $('confirm-did').textContent = did;
  const answer = (then) => () => { show('confirm', false); then().catch(unreachable); };
  $('go').onclick = answer(go);
  show('other', Boolean(other));
  if (other) $('other').onclick = answer(other);
  $('go').focus();
}

async function oauth(id) {
  run += 1;
  const path = `oauth/session/${encodeURIComponent(id)}`;
  const info = await call('GET', `${path}/info`);
  if (info.status === 404) return gone();
  if (info.status === 403) return stop('This sign-in was started in another browser. Go back to the application and start again here.', false);
  if (info.status !== 200) return stop('Signing in is not possible at the moment. Go back to the application and try again.', false);
  const client = info.json.client_id;
  const onwards = async (url) => {
    run += 1;
    clearInterval(timer);
    show('scan', false);
    show('more', false);
    if (!url) return say(`You are signed in to ${client}. You can close this page.`, 'good');
    say(`Signed in. Taking you to ${client} …`, 'good');
    leave(url);
  };
  const byWallet = async () => {
    head('Sign in');
    show('more');
    $('lead').textContent = `Prove who you are with your identity wallet to go on to ${client}.`;
    const session = new URL(info.json.auth_request.body.callbackUrl).searchParams.get('session');
    present(info.json.auth_request, session);
    poll(`${path}/status`, {}, async (answer) => {
      run += 1;
      clearInterval(timer);
      const after = await call('GET', `${path}/info`);
      if (!answer.redirect_url || after.status !== 200) return onwards(answer.redirect_url);
      confirm(client, after.json.did ?? '', () => onwards(answer.redirect_url));
    }).catch(unreachable);
    if (info.json.allow_mock) {
      show('mock');
      $('mock').onclick = () => call('POST', `${path}/mock-complete`, {});
    }
  };
  if (!info.json.silent) return byWallet();
  confirm(client, info.json.did ?? '', async () => {
    say('Looking for your sign-in …');
    const silent = await call('POST', `${path}/silent-complete`);
    return silent.status === 200 ? onwards(silent.json.redirect_url) : byWallet();
  }, byWallet);
}

/** The address to which the organization's directory redirects the browser. */
const directoryReturn = () => at('auth/directory/callback');

async function toDirectory() {
  const { status, json } = await call('GET', `api/v1/auth/directory/url?redirect_uri=${encodeURIComponent(directoryReturn())}`);
  if (status !== 200) return say('Your organization’s sign-in is not available at the moment.', 'bad');
  sessionStorage.setItem(KEEP, location.search);
  leave(json.url);
}

async function fromDirectory() {
  const before = new URLSearchParams(sessionStorage.getItem(KEEP) ?? '');
  sessionStorage.removeItem(KEEP);
  const [code, state] = [query.get('code'), query.get('state')];
  // Code and state must not stay in the browser history.
  history.replaceState(null, '', location.pathname);
  $('again').onclick = () => leave(at('login'));
  $('again').textContent = 'Back to sign-in';
  if (!code || !state) return stop('Your organization did not sign you in.', true);
  const { status, json } = await call('POST', 'api/v1/auth/directory/callback', { code, state, redirect_uri: directoryReturn() });
  if (status === 403) return stop(`Your organization’s account may not sign in here: ${json.error ?? 'not authorized'}. Ask whoever runs this service.`, true);
  if (status !== 200) return stop('Your organization’s sign-in failed.', true);
  // Restarts the application's request, now that the user is signed in.
  if (before.has('oauth_session')) {
    say('Signed in. Taking you on …', 'good');
    return leave(at(`oauth/session/${encodeURIComponent(before.get('oauth_session'))}/restart`));
  }
  if (before.has('return')) query.set('return', before.get('return'));
  signedIn(json);
}

async function providers() {
  const { status, json } = await call('GET', 'api/v1/auth/providers');
  if (status === 200 && json.providers?.includes('directory')) {
    show('directory');
    $('directory').onclick = () => toDirectory().catch(unreachable);
  }
}

function unreachable() {
  stop('The service cannot be reached. Check your connection.', true);
}

function start() {
  if (page.view === 'directory') return fromDirectory().catch(unreachable);
  $('again').onclick = () => start();
  providers().catch(() => {});
  const id = query.get('oauth_session');
  return (id ? oauth(id) : login()).catch(unreachable);
}

start();
