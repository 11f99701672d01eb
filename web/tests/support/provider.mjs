// An identity provider for tests: `oidc-provider` on a free port of the loopback, with people who have any password.
//
//   node provider.mjs '{"redirect": "http://...", "logout": "http://...", "host": "127.0.0.1"}'
//
// It prints where it listens, and ends with its parent.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { redirect, logout, host = '127.0.0.1' } = JSON.parse(process.argv[2]);

/** Everybody else who signs in has a verified address and no group. */
const PEOPLE = {
  ada: { name: 'Ada Lovelace', groups: ['ops', 'dev'] },
  grace: { name: 'Grace Hopper', groups: ['dev'] },
  mallory: { email: 'mallory@example.com', email_verified: false },
  nobody: { email: undefined },
};

function claimsOf(id) {
  const person = PEOPLE[id] ?? {};
  return {
    sub: id,
    preferred_username: id,
    email: `${id}@example.com`,
    email_verified: true,
    groups: [],
    ...person,
  };
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const provider = new Provider(`http://${host}:${port}`, {
    clients: [
      {
        client_id: 'signalbox',
        client_secret: 'the secret of the client',
        redirect_uris: [redirect],
        backchannel_logout_uri: logout,
        backchannel_logout_session_required: true,
      },
    ],
    findAccount: (_, id) => ({ accountId: id, claims: () => claimsOf(id) }),
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'preferred_username'],
      groups: ['groups'],
    },
    scopes: ['openid', 'groups'],
    // The usual one refuses addresses of this machine, where the service is.
    fetch: (url, { dispatcher: _, ...options }) => fetch(url, options),
    pkce: { required: () => true },
    cookies: { keys: ['only for tests'] },
    features: {
      devInteractions: { enabled: true },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    // Nobody is asked whether this service may know who they are.
    loadExistingGrant: async (context) => {
      const { client, session, provider: own } = context.oidc;
      const grant = new own.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
  });
  provider.on('backchannel.error', (_, error) => console.error('back-channel logout failed:', error));
  provider.on('server_error', (_, error) => console.error('server error:', error));
  server.on('request', provider.callback());
  console.log(`listening on http://127.0.0.1:${port}`);
});

const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(0), 500);
