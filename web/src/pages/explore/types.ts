// The names that Explore and the dashboards use for what the API gives.
import type { components } from '../../../generated/api';

type Schemas = components['schemas'];

export type CombinedAnswer = Schemas['CombinedOut'];
export type CombinedLine = CombinedAnswer['lines'][number];
export type View = Schemas['ViewOut'];

export type SharedWith = View['shared_with'];
export type ViewDefinition = View['definition'];
export type Dashboard = Schemas['DashboardOut'];
export type Layout = Dashboard['layout'];
export type PanelOf = Layout['panels'][number];
