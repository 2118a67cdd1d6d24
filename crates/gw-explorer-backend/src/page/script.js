// The page of the explorer's backend: who is signed in, and the latest transactions that the viewer may see.
import { $, bindHeader, call, readSession } from './explorer-shared.js';

const PRIVATE = '[PRIVATE]';

/** Shortens hashes and addresses; the whole text stays in the title. */
function shortened(text) {
  return text.length > 20 ? `${text.slice(0, 10)}…${text.slice(-6)}` : text;
}

/** A cell of the table. What the viewer may not see reads "Private", and so does what was removed: an empty text. */
function cell(value, label) {
  const td = document.createElement('td');
  td.dataset.label = label;
  const span = document.createElement('span');
  if (value === PRIVATE || value === '') {
    span.textContent = 'Private';
    span.className = 'private';
  } else if (value === null || value === undefined) {
    span.textContent = '–';
  } else {
    span.textContent = shortened(String(value));
    td.title = String(value);
  }
  td.append(span);
  return td;
}

const COLUMNS = [['hash', 'Transaction'], ['blockNumber', 'Block'], ['from', 'From'], ['to', 'To'], ['value', 'Value (wei)']];

function show(message) {
  $('message').textContent = message;
  $('message').hidden = message === '';
}

/** Shows the list. Returns the member whose view it is; null for the viewer's own. */
async function showTransactions(isViewingAs) {
  const { ok, status, body, viewAs } = await call('GET', 'api/transactions?limit=25');
  const rows = $('transactions').tBodies[0];
  rows.replaceChildren();
  $('transactions').hidden = true;
  if (!ok) {
    const text = status === 404 || status === 503 ? 'The explorer has no data yet.' : 'The transactions cannot be loaded now.';
    show(isViewingAs ? `This view cannot be shown: ${body?.error ?? 'try again later'}.` : text);
    return viewAs;
  }
  const list = Array.isArray(body) ? body : body?.data ?? [];
  for (const transaction of list) {
    const tr = document.createElement('tr');
    for (const [name, label] of COLUMNS) tr.append(cell(transaction[name], label));
    rows.append(tr);
  }
  show(list.length === 0 ? 'There are no transactions that you may see.' : '');
  $('transactions').hidden = list.length === 0;
  return viewAs;
}

async function refresh() {
  try {
    // One after the other: the first renews the session, if it is time.
    const session = await readSession();
    const viewAs = await showTransactions(Boolean(session?.view_as));
    // Another tab may have begun or ended view-as in between: the banner tells whose rows these are.
    if (session && (session.view_as?.did ?? null) !== viewAs) await readSession();
  } catch {
    show('The explorer cannot be reached.');
  }
}

bindHeader(refresh, show);
refresh();
