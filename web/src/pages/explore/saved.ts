// Saved views and dashboards, as the service keeps them.
import { api, take, takeAll, takePage } from '../../api/client';
import type { Dashboard, Layout, SharedWith, View, ViewDefinition } from './types';

/** The width of a view that is put on a dashboard: half of it. */
export const USUAL_WIDTH = 6;

/** No server has it. */
const NO_SERVER = '00000000-0000-0000-0000-000000000000';

/** No servers mean all of them, so a view whose servers are all hidden would show the reader's own. */
function withoutHidden(view: View): View {
  if (view.hidden_servers === 0 || view.definition.servers.length > 0) return view;
  return { ...view, definition: { ...view.definition, servers: [NO_SERVER] } };
}

export const listViews = async (): Promise<View[]> => {
  const views = await takeAll((offset, limit) =>
    takePage(api.GET('/api/v1/views', { params: { query: { offset, limit } } })),
  );
  return views.map(withoutHidden);
};

export const listDashboards = (): Promise<Dashboard[]> =>
  takeAll((offset, limit) => takePage(api.GET('/api/v1/dashboards', { params: { query: { offset, limit } } })));

export const readView = async (id: string): Promise<View> =>
  withoutHidden(await take(api.GET('/api/v1/views/{id}', { params: { path: { id } } })));

export const readDashboard = (id: string): Promise<Dashboard> =>
  take(api.GET('/api/v1/dashboards/{id}', { params: { path: { id } } }));

interface Named {
  name: string;
  description: string;
  shared_with?: SharedWith;
}

export const createView = (body: Named & { definition: ViewDefinition }): Promise<View> =>
  take(api.POST('/api/v1/views', { body: body as never }));

export const changeView = (id: string, body: Partial<Named> & { definition?: ViewDefinition }): Promise<View> =>
  take(api.PUT('/api/v1/views/{id}', { params: { path: { id } }, body: body as never }));

export const deleteView = (id: string): Promise<unknown> =>
  take(api.DELETE('/api/v1/views/{id}', { params: { path: { id } } }));

export const createDashboard = (body: Named & { layout?: Layout }): Promise<Dashboard> =>
  take(api.POST('/api/v1/dashboards', { body: body as never }));

export const changeDashboard = (id: string, body: Partial<Named> & { layout?: Layout }): Promise<Dashboard> =>
  take(api.PUT('/api/v1/dashboards/{id}', { params: { path: { id } }, body: body as never }));

export const deleteDashboard = (id: string): Promise<unknown> =>
  take(api.DELETE('/api/v1/dashboards/{id}', { params: { path: { id } } }));

/** Puts a view at the end of a dashboard. */
export async function addTo(dashboardId: string, viewId: string): Promise<Dashboard> {
  const { layout } = await readDashboard(dashboardId);
  const panel = { view_id: viewId, width: USUAL_WIDTH, height: 1 };
  return changeDashboard(dashboardId, { layout: { ...layout, panels: [...layout.panels, panel] } });
}

const WIDTH: Record<SharedWith, number> = { nobody: 0, administrators: 1, everyone: 2 };

/** One's own views that fewer people see than a dashboard: they would have an empty place there. */
export function toShareWith(audience: SharedWith, views: readonly View[]): View[] {
  return views.filter((view) => view.mine && WIDTH[view.shared_with] < WIDTH[audience]);
}

/** Shares what [`toShareWith`] finds. */
export async function shareViews(audience: SharedWith, views: readonly View[]): Promise<void> {
  for (const view of toShareWith(audience, views)) await changeView(view.id, { shared_with: audience });
}
