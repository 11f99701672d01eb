// What this page needs to resume its terminals after it was loaded again. The secrets stay in this tab, and no longer than
// the sign-in.

/** The names of tickets in the tab's storage begin so. */
const PREFIX = 'terminal:';

export interface Ticket {
  terminalId: string;
  secret: string;
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
    const { terminalId, secret } = found ?? {};
    return typeof terminalId === 'string' && typeof secret === 'string' ? { terminalId, secret } : null;
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
