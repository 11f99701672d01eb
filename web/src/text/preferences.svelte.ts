import { keep, kept } from './kept';

export type Clock = 'auto' | '24' | '12';
export type Zone = 'local' | 'utc';

const CLOCKS: readonly Clock[] = ['auto', '24', '12'];
const ZONES: readonly Zone[] = ['local', 'utc'];

/** How times are written, as it was chosen in this browser. */
class Preferences {
  #clock = $state<Clock>(CLOCKS.find((clock) => clock === kept('clock')) ?? 'auto');
  #zone = $state<Zone>(ZONES.find((zone) => zone === kept('zone')) ?? 'local');

  get clock(): Clock {
    return this.#clock;
  }

  set clock(clock: Clock) {
    this.#clock = clock;
    keep('clock', clock === 'auto' ? null : clock);
  }

  get zone(): Zone {
    return this.#zone;
  }

  set zone(zone: Zone) {
    this.#zone = zone;
    keep('zone', zone === 'local' ? null : zone);
  }
}

export const preferences = new Preferences();
