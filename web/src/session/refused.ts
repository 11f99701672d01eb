// What a browser's refusal to use a passkey means.
import * as m from '#messages/factors';
import { Failure } from '../api/failure';

/** The refusal as a failure with words for people. What is no refusal of the browser stays what it is. */
export function refusedPasskey(error: unknown, page: Pick<Location, 'hostname' | 'port'> = location): unknown {
  if (!(error instanceof DOMException)) return error;
  const failure = (message: string) => new Failure(0, 'passkey', message);
  switch (error.name) {
    case 'NotAllowedError':
    case 'AbortError':
      return failure(m.passkeyCancelled());
    case 'InvalidStateError':
      return failure(m.passkeyKnown());
    case 'SecurityError': {
      // Passkeys belong to names, and this address has none.
      const isLoopback = page.hostname === '127.0.0.1' || page.hostname === '[::1]';
      const local = `http://localhost${page.port ? `:${page.port}` : ''}`;
      return failure(isLoopback ? m.passkeyLocalhost({ address: local }) : m.passkeyElsewhere());
    }
    default:
      return failure(m.passkeyUnable());
  }
}
