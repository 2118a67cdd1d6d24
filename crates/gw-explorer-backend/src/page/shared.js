// What the pages share: calls of this service, and the banner of view-as.

export const $ = (id) => document.getElementById(id);

export async function call(method, path, content) {
  const headers = { accept: 'application/json' };
  const options = { method, headers, credentials: 'same-origin', cache: 'no-store' };
  if (content !== undefined) {
    headers['content-type'] = 'application/json';
    options.body = JSON.stringify(content);
  }
  const answer = await fetch(path, options);
  const body = await answer.json().catch(() => null);
  return { ok: answer.ok, status: answer.status, body, viewAs: answer.headers.get('x-view-as') };
}

/** Shows whose view is shown, with a button that ends it. `view` is null for the viewer's own. */
export function showBanner(view) {
  $('banner').hidden = !view;
  $('banner-did').textContent = view?.did ?? '';
  $('banner-org').textContent = view?.org_name ?? view?.org_id ?? '';
}

/** Who is signed in; null if it cannot be read. */
export async function readSession() {
  const { ok, body } = await call('GET', 'api/auth/status');
  if (!ok) {
    $('session').textContent = 'The session cannot be read now.';
    return null;
  }
  $('session').textContent = body.authenticated ? `Signed in as ${body.did ?? 'unknown'}` : 'Not signed in';
  $('sign-in').hidden = body.authenticated || !body.privacy_enabled;
  $('log-out').hidden = !body.authenticated;
  $('view-as-link').hidden = !body.authenticated || Boolean(body.view_as);
  showBanner(body.view_as ?? null);
  return body;
}

/** Makes the buttons of the header and the banner work. `refresh` loads the page's content anew; `fail` shows a text. */
export function bindHeader(refresh, fail) {
  const bind = (id, method, path, text) => {
    $(id).onclick = async () => {
      $(id).disabled = true;
      const { ok, body } = await call(method, path).catch(() => ({ ok: false, body: null }));
      $(id).disabled = false;
      await refresh();
      if (!ok) fail(body?.error ?? text);
    };
  };
  bind('log-out', 'POST', 'api/auth/logout', 'The session could not be ended.');
  bind('banner-exit', 'DELETE', 'api/view-as', 'Your own view could not be restored.');
}
