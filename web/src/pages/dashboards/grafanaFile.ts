// The file of a dashboard for Grafana, with what the page may not know yet.
import { fleet } from '../../live/fleet.svelte';
import { fileName, saveFile } from '../explore/file';
import { listViews } from '../explore/saved';
import { series } from '../explore/series.svelte';
import type { Dashboard, View } from '../explore/types';
import { grafanaOf } from './grafana';

/** Saves it; `views` are those that are known already. */
export async function saveGrafanaFile(dashboard: Dashboard, views: View[] | undefined): Promise<void> {
  // What is not known would be missing there. The units of open series are part of their names.
  const [known] = await Promise.all([views ?? listViews(), fleet.isKnown || fleet.load(), series.load()]);
  if (!fleet.isKnown) throw fleet.failure;
  if (!series.isKnown) throw series.failure;
  const servers = fleet.rows.map(({ id, server }) => ({ id, tags: server.tags }));
  const shown = new Map(known.map((view) => [view.id, view]));
  const model = grafanaOf(dashboard, shown, { servers, series: series.described });
  saveFile(fileName(dashboard.name, 'json'), 'application/json', JSON.stringify(model, null, 2));
}
