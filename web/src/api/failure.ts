import * as m from '#messages/app';

/** One fault of a request, as 422 tells them: `loc` is where it lies, `["body", "name"]`. */
export interface Fault {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** Why a request did not succeed: the service's answer, or none at all (`status` 0). */
export class Failure extends Error {
  readonly status: number;
  /** The machine name: `agent_offline`, `not_found`, ...; `unreachable` where there was no answer. */
  readonly code: string;
  readonly faults: Fault[];
  readonly requestId: string | null;
  /** Of `agent_refused`: why the signatures did not suffice. */
  reason: string | null = null;

  constructor(status: number, code: string, message: string, faults: Fault[] = [], requestId: string | null = null) {
    super(message);
    this.name = 'Failure';
    this.status = status;
    this.code = code;
    this.faults = faults;
    this.requestId = requestId;
  }

  /** There was no answer: the service is away, or the network is. */
  static unreachable(): Failure {
    return new Failure(0, 'unreachable', m.failed());
  }

  /** What an answer with a status of 400 and more tells. */
  static of(response: Response, body: unknown): Failure {
    const requestId = response.headers.get('x-request-id');
    const told = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
    const code = typeof told.code === 'string' ? told.code : '';
    if (Array.isArray(told.detail)) {
      return new Failure(response.status, code, m.checkFields(), told.detail as Fault[], requestId);
    }
    const fallback = m.answered({ status: String(response.status) });
    const text = sentence(typeof told.detail === 'string' ? told.detail : fallback);
    const failure = new Failure(response.status, code, text, [], requestId);
    if (typeof told.reason === 'string') failure.reason = told.reason;
    return failure;
  }

  /** Whether the same request may succeed later without anything being changed. */
  get isPassing(): boolean {
    return this.status === 0 || this.status >= 500;
  }

  /** What is wrong with a field: `of('name')`, `of('settings', 'url')`. */
  of(...path: (string | number)[]): string | null {
    const faults = this.faults.filter((fault) =>
      path.every((part, index) => String(fault.loc[index + 1]) === String(part)),
    );
    return faults.length ? [...new Set(faults.map(words))].join(' ') : null;
  }

  /** Faults that lie at none of these fields, so that none is lost where a form has no place for it. */
  besides(fields: string[]): Fault[] {
    return this.faults.filter((fault) => !fields.includes(String(fault.loc[1])));
  }
}

/** Whatever was thrown, as a failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof TypeError || (error instanceof DOMException && error.name !== 'AbortError'))
    return Failure.unreachable();
  return new Failure(0, 'fault', error instanceof Error ? error.message : String(error));
}

/** Faults that nearly every form knows, as a person says them. The others come in the service's own words. */
const WORDS: [RegExp, (found: string) => string][] = [
  [/^field required$|^none is not an allowed value$|at least 1 characters?$/, m.required],
  [/at least (\d+) characters?$/, (found) => m.atLeastCharacters({ count: found })],
  [/at most (\d+) characters?$/, (found) => m.atMostCharacters({ count: found })],
  [/greater than or equal to (-?[\d.]+)$/, (found) => m.atLeast({ value: found })],
  [/less than or equal to (-?[\d.]+)$/, (found) => m.atMost({ value: found })],
];

function words(fault: Fault): string {
  for (const [pattern, say] of WORDS) {
    const found = pattern.exec(fault.msg);
    if (found) return say(found[1] ?? '');
  }
  return sentence(fault.msg);
}

export function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}
