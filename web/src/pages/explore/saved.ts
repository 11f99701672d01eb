// Saved views and dashboards, as the service keeps them.
import { api, take, takeAll, takePage } from '../../api/client';
import type { Dashboard, Layout, View, ViewDefinition } from './types';

/** The width of a view that is put on a dashboard: half of it. */
export const USUAL_WIDTH = 6;

export const listViews = (): Promise<View[]> =>
  takeAll((offset, limit) => takePage(api.GET('/api/v1/views', { params: { query: { offset, limit } } })));

export const listDashboards = (): Promise<Dashboard[]> =>
  takeAll((offset, limit) => takePage(api.GET('/api/v1/dashboards', { params: { query: { offset, limit } } })));

export const readView = (id: string): Promise<View> =>
  take(api.GET('/api/v1/views/{id}', { params: { path: { id } } }));

export const readDashboard = (id: string): Promise<Dashboard> =>
  take(api.GET('/api/v1/dashboards/{id}', { params: { path: { id } } }));

interface Named {
  name: string;
  description: string;
}

export const createView = (body: Named & { definition: ViewDefinition }): Promise<View> =>
  take(api.POST('/api/v1/views', { body: body as never }));

export const changeView = (id: string, body: Named & { definition: ViewDefinition }): Promise<View> =>
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
