// What this page needs to resume its terminals after it was loaded again. The secrets stay in this tab and in its duplicates, and no
// longer than the sign-in.

/** The names of tickets in the tab's storage begin so. */
const PREFIX = 'terminal:';

export interface Ticket {
  terminalId: string;
  secret: string;
  /** How much output the page has drawn, and answered where it asked for something. */
  bytes: number;
  /** Nothing waits after this time. */
  until: number;
}

export function keepTicket(serverId: string, ticket: Ticket): void {
  try {
    sessionStorage.setItem(PREFIX + serverId, JSON.stringify(ticket));
  } catch {
    // Without storage a terminal ends with its page.
  }
}

export function ticketOf(serverId: string): Ticket | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(PREFIX + serverId) ?? 'null') as Partial<Ticket> | null;
    const { terminalId, secret, bytes, until } = found ?? {};
    if (typeof terminalId !== 'string' || typeof secret !== 'string') return null;
    if (typeof bytes !== 'number' || typeof until !== 'number' || until <= Date.now()) return null;
    return { terminalId, secret, bytes, until };
  } catch {
    return null;
  }
}

export function dropTicket(serverId: string): void {
  try {
    sessionStorage.removeItem(PREFIX + serverId);
  } catch {
    // See above.
  }
}

/** Nobody is signed in here any more. */
export function dropAllTickets(): void {
  try {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  } catch {
    // See above.
  }
}
