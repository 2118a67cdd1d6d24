// A certified OpenID provider that speaks like an enterprise directory: tenants below one authority, `tid` and `oid` in
// its tokens, machines by client credentials. It runs until its input ends.
//
//   node provider.mjs '{"tenants": [...], "client": {...}, "machine": {...}, "audience": "api://..."}'
import { createServer } from 'node:http'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import Provider from 'oidc-provider'

const { tenants, client, machine, audience } = JSON.parse(process.argv[2])

const signingKey = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }
}

const provider = (authority, tenant, keys) => {
  const made = new Provider(`${authority}/${tenant}/v2.0`, {
    jwks: { keys },
    cookies: { keys: [randomUUID()] },
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: client.redirect_uris,
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
      {
        client_id: machine.id,
        client_secret: machine.secret,
        redirect_uris: [],
        grant_types: ['client_credentials'],
        response_types: [],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    pkce: { required: () => true },
    // The directory puts the claims of all scopes into the id token.
    conformIdTokenClaims: false,
    claims: { openid: ['sub', 'oid', 'tid'], profile: ['name'], email: ['email'] },
    scopes: ['openid', 'profile', 'email', 'user_impersonation'],
    findAccount: (_, oid) => ({
      accountId: oid,
      // As with the directory: the subject differs from application to application, the object id does not.
      claims: () => ({ sub: oid, oid, tid: tenant, name: 'Somebody', email: 'somebody@bank.example' }),
    }),
    extraTokenClaims: (_, token) =>
      token.kind === 'ClientCredentials'
        ? { tid: tenant, oid: machine.oid, azp: token.clientId, idtyp: 'app', roles: machine.roles, ver: '2.0' }
        : { tid: tenant, oid: token.accountId, azp: token.clientId, scp: 'user_impersonation', ver: '2.0' },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: 'user_impersonation',
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    interactions: { url: (_, interaction) => `/${tenant}/v2.0/interaction/${interaction.uid}` },
    // Nobody is asked for consent: an administrator gave it for all.
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      })
      grant.addOIDCScope('openid profile email user_impersonation')
      grant.addResourceScope(audience, 'user_impersonation')
      await grant.save()
      return grant
    },
  })
  const callback = made.callback()
  return async (request, response) => {
    if (request.url.startsWith('/interaction/')) {
      // Whoever is named logs in.
      const { params } = await made.interactionDetails(request, response)
      return made.interactionFinished(request, response, { login: { accountId: params.login_hint } })
    }
    return callback(request, response)
  }
}

let directory = {}
const renew = (authority) => {
  const keys = [signingKey()]
  directory = Object.fromEntries(tenants.map((tenant) => [tenant, provider(authority, tenant, keys)]))
}

const server = createServer(async (request, response) => {
  const authority = `http://127.0.0.1:${server.address().port}`
  try {
    if (request.url === '/rotate') {
      renew(authority)
      response.end('rotated')
      return
    }
    const [, tenant, version] = request.url.split('/')
    const prefix = `/${tenant}/${version}`
    if (version !== 'v2.0' || !directory[tenant]) {
      response.writeHead(404).end()
      return
    }
    request.originalUrl = request.url
    request.url = request.url.slice(prefix.length)
    await directory[tenant](request, response)
  } catch (error) {
    console.error(error)
    response.writeHead(500).end(String(error))
  }
})
server.listen(0, '127.0.0.1', () => {
  const authority = `http://127.0.0.1:${server.address().port}`
  renew(authority)
  console.log(`Listening on ${authority}`)
})
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
