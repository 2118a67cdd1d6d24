// The page that chooses whose view is shown. A link may fill in the form (`?did=…&org_id=…`); only a click sends it.
import { $, bindHeader, call, readSession } from './explorer-shared.js';

function show(message, isError = false) {
  $('message').textContent = message;
  $('message').className = isError ? 'error' : '';
  $('message').hidden = message === '';
}

async function refresh() {
  try {
    const session = await readSession();
    const isFree = Boolean(session?.authenticated) && !session.view_as;
    $('choice').hidden = !isFree;
    if (session?.view_as) show('Return to your own view to choose another member.');
    else show(session && !session.authenticated ? 'Sign in to view the explorer as a member of your organization.' : '');
    if (isFree) await showOrganizations();
  } catch {
    show('The explorer cannot be reached.');
  }
}

/** Offers the organizations of the signed-in user. */
async function showOrganizations() {
  const { ok, body } = await call('GET', 'api/view-as/organizations');
  const list = ok ? body?.organizations ?? [] : [];
  const wanted = new URLSearchParams(location.search).get('org_id');
  $('org').replaceChildren(...list.map(({ id, name }) => new Option(name, id, false, id === wanted)));
  if (list.length === 0) show('You are not a member of an organization.');
}

$('choice').onsubmit = async (event) => {
  event.preventDefault();
  $('begin').disabled = true;
  const content = { did: $('did').value.trim(), org_id: $('org').value };
  const { ok, status, body } = await call('POST', 'api/view-as', content).catch(() => ({ ok: false, body: null }));
  $('begin').disabled = false;
  if (ok) {
    location.assign('./');
    return;
  }
  if (status === 401) await refresh();
  show(`The view was not changed: ${body?.error ?? 'try again later'}.`, true);
};

$('did').value = new URLSearchParams(location.search).get('did') ?? '';
bindHeader(refresh, show);
refresh();
