import { serviceInfo, type ServiceInfo } from './service';

/** A door that waits longer than this is opened without knowing. */
const PATIENCE_MS = 3_000;

/** What the service tells everybody, signed in or not. */
class Service {
  /** What is known of it; null until it was asked, and where it does not say. */
  info = $state.raw<ServiceInfo | null>(null);

  /** Asks it. Never fails: what is not known restricts nothing. */
  async load(): Promise<void> {
    try {
      const response = await fetch('/api/v1/service', { signal: AbortSignal.timeout(PATIENCE_MS) });
      if (response.ok) this.info = serviceInfo(await response.json());
    } catch {
      // It is asked again with the next page that wants to know.
    }
  }

  /** The address under which servers reach the service: the configured one, else the one in the browser. */
  get address(): string {
    return this.info?.public_url ?? location.origin;
  }
}

export const service = new Service();
