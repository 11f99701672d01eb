// What somebody changes of a dashboard, until it is saved or discarded.
import { untrack } from 'svelte';
import * as m from '#messages/dashboards';
import { router } from '../../router/router.svelte';
import { staying } from '../../router/stay';
import { confirm } from '../../ui/confirm.svelte';
import { Submission, type Loaded } from '../../ui/form.svelte';
import { toasts } from '../../ui/toasts.svelte';
import { changeDashboard, listViews, shareViews } from '../explore/saved';
import type { Dashboard, Layout, SharedWith, View } from '../explore/types';
import { isSameLayout } from './layout';

/** Made while a component is, with which it ends. */
export class Draft {
  name = $state('');
  description = $state('');
  shared = $state<SharedWith>('nobody');
  readonly saving = new Submission();
  #edited = $state.raw<Layout | null>(null);
  readonly #id: () => string;
  readonly #dashboard: () => Loaded<Dashboard>;
  readonly #views: Loaded<View[]>;

  constructor(id: () => string, dashboard: () => Loaded<Dashboard>, views: Loaded<View[]>) {
    this.#id = id;
    this.#dashboard = dashboard;
    this.#views = views;
    $effect(() => {
      const saved = this.#saved?.layout;
      if (this.isEditing) untrack(() => (this.#edited ??= saved ?? null));
      else this.#edited = null;
    });
    $effect(() => {
      if (!this.isEditing) return;
      this.name = this.#saved?.name ?? '';
      this.description = this.#saved?.description ?? '';
      this.shared = this.#saved?.shared_with ?? 'nobody';
    });
  }

  get #saved(): Dashboard | undefined {
    return this.#dashboard().value;
  }

  readonly isMine = $derived.by(() => this.#saved?.mine ?? false);

  readonly isEditing = $derived(this.isMine && router.query.get('edit') === '1');

  /** What is being edited; the saved one otherwise. */
  readonly layout = $derived.by(() => this.#edited ?? this.#saved?.layout ?? null);

  readonly #isChanged = $derived.by(
    () => this.#edited !== null && this.#saved !== undefined && !isSameLayout(this.#edited, this.#saved.layout),
  );

  change(part: Partial<Layout>): void {
    if (this.layout) this.#edited = { ...this.layout, ...part };
  }

  async save(): Promise<void> {
    const [edited, editedId, views] = [this.#dashboard(), this.#id(), this.#views];
    const isHere = staying();
    const named = { name: this.name.trim(), description: this.description.trim(), shared_with: this.shared };
    const body = { ...named, ...(this.layout ? { layout: this.layout } : {}) };
    const kept = await this.saving.run(async () => {
      // Before anything is changed: the dashboard would be shared without those of its views that are not known yet.
      const known = named.shared_with === 'nobody' ? [] : (views.value ?? (await listViews()));
      const changed = await changeDashboard(editedId, body);
      const shown = new Set(changed.layout.panels.map((panel) => panel.view_id));
      await shareViews(
        named.shared_with,
        known.filter((view) => shown.has(view.id)),
      );
      return changed;
    });
    if (!kept) return;
    void views.load();
    edited.show(kept);
    toasts.done(m.saved());
    if (isHere()) this.#end();
  }

  async cancel(): Promise<void> {
    const question = { title: m.discard(), text: m.discardText(), action: m.discardIt(), danger: true };
    if (this.#isChanged && !(await confirm.ask(question))) return;
    this.#end();
  }

  #end(): void {
    this.#edited = null;
    router.set({ edit: null });
  }
}
