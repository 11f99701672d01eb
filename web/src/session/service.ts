/** What a service tells everybody of itself. */
export interface ServiceInfo {
  version: string | null;
  /** There is no account yet: the first one that is made administers the service. */
  needs_setup: boolean;
  /** That first account needs the setup code that the service wrote to its log. */
  setup_code_required: boolean;
  registration: 'open' | 'closed';
  /** Who may sign in with a password. */
  password_login: 'on' | 'admins' | 'off';
  /** What people call the identity provider that they may sign in at; null where there is none. */
  provider: string | null;
  /** The address under which people reach it, where its operator has told. */
  public_url: string | null;
  /** Whether it can send e-mail; null where it is not known. */
  email: boolean | null;
  /** Its public key for push messages to browsers; null where it has none. */
  push_key: string | null;
}

/** What `GET /api/v1/service` answered. What it does not tell restricts nothing. */
export function serviceInfo(body: unknown): ServiceInfo {
  const told: Record<string, unknown> = typeof body === 'object' && body !== null ? { ...body } : {};
  return {
    version: typeof told.version === 'string' ? told.version : null,
    needs_setup: told.needs_setup === true,
    setup_code_required: told.setup_code_required === true,
    registration: told.registration === 'closed' ? 'closed' : 'open',
    password_login: told.password_login === 'admins' || told.password_login === 'off' ? told.password_login : 'on',
    provider: nameOf(told.oidc),
    public_url: typeof told.public_url === 'string' ? told.public_url : null,
    email: typeof told.email === 'boolean' ? told.email : null,
    push_key: typeof told.push_key === 'string' ? told.push_key : null,
  };
}

function nameOf(provider: unknown): string | null {
  const told: Record<string, unknown> = typeof provider === 'object' && provider !== null ? { ...provider } : {};
  return typeof told.name === 'string' ? told.name : null;
}
