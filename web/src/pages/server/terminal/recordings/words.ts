// How the time of a player is written.
import * as texts from '#messages/recordings';
import * as m from '#messages/units';
import { plainName } from './cast';

/** A time to the second, with all its parts: `0 s`, `1 min 3 s`, `2 h 0 min 5 s`. */
export function playTime(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const parts = [m.seconds({ count: String(whole % 60) })];
  if (minutes > 0 || hours > 0) parts.unshift(m.minutes({ count: String(minutes) }));
  if (hours > 0) parts.unshift(m.hours({ count: String(hours) }));
  return parts.join(' ');
}

/** How far it is, and how much there is: a second that has begun counts to the whole, so that the end is the end. */
export function played(position: number, duration: number): [position: string, duration: string] {
  const end = playTime(Math.ceil(duration));
  return [position >= duration ? end : playTime(position), end];
}

/** Who opened a terminal, and from which address, as the agent wrote it down: `ada from ::1`. */
export function opener(by: string): string {
  const plain = plainName(by);
  const [, name, address] = /^(.+) from (\S+)$/.exec(plain) ?? [];
  return name && address ? texts.from({ name, address }) : plain;
}
