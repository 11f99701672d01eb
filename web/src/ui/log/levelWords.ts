import * as m from '#messages/log';
import type { Level } from './levels';

/** A level as people say it. */
export function levelWord(level: Level): string {
  return m.level({ level });
}

/** As programs write it, short enough for a column. */
export function levelMark(level: Level): string {
  return level.toUpperCase();
}

/** The address of a server's charts around a moment, and of all that happened then. */
export function placesOf(serverId: string, at: number): { charts: string; timeline: string } {
  const moment = iso(at);
  const around = new URLSearchParams({ from: iso(at - AROUND_MS), to: iso(at + AROUND_MS), at: moment });
  const timeline = new URLSearchParams({ server: serverId, at: moment });
  return { charts: `/servers/${encodeURIComponent(serverId)}?${around}`, timeline: `/timeline?${timeline}` };
}

const AROUND_MS = 5 * 60_000;

function iso(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
