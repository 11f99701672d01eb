import * as m from '#messages/fleet';
import type { ColumnKey } from './columns';

/** The headings of columns. */
export const columnLabels: Record<ColumnKey, () => string> = {
  name: m.name,
  status: m.status,
  beats: m.lastDay,
  cpu: m.cpu,
  course: m.cpuCourse,
  memory: m.memory,
  memoryCourse: m.memoryCourse,
  disk: m.diskShort,
  in: m.incoming,
  out: m.outgoing,
  load: m.load,
  uptime: m.uptime,
  containers: m.containers,
  cores: m.cores,
  tags: m.tags,
  host: m.host,
  os: m.os,
  agent: m.agent,
  signed: m.signedBy,
  seen: m.seen,
};
