/** Types and branches that the caller may see, kept for the tree, the palette and completion. */
import { signal } from '@preact/signals';
import { data, json, session, terms } from './api.ts';

export interface TypeView {
  readonly name: string;
  readonly properties: Readonly<
    Record<string, { readonly type: string; readonly masked: boolean; readonly subject: boolean; readonly references?: string }>
  >;
  readonly primary_key: string | null;
  readonly protected: boolean;
  readonly edge?: { readonly from: string; readonly to: string };
}

export interface BranchView {
  readonly name: string;
  readonly tenant: string | null;
  readonly source: string | null;
  readonly forked_at: string | number | null;
  readonly shares: string;
}

export interface ViewOfTypes {
  readonly name: string;
  readonly sql: string;
  readonly refresh_secs: number;
}

/** An agreement by which one tenant lets another see rows. */
export interface Agreement {
  readonly id: string;
  readonly state: string;
  readonly sides: readonly string[];
  readonly assigner: string;
  readonly assignee: string;
  readonly target: {
    readonly types: readonly string[];
    readonly where: string | null;
    readonly columns: readonly string[] | null;
  };
  readonly permission: readonly string[];
  readonly purposes: readonly string[];
  readonly valid_to: string | null;
  readonly history: string;
  readonly events: readonly { readonly change: string; readonly principal: string; readonly time: string }[];
}

/** Types that every store has. */
export const builtIn: ReadonlySet<string> = new Set(
  'MemoryItem DecisionRecord AgentSession ToolCall Episode KnowledgeTriple KvEntry PubSubMessage DocumentEntry ObjectStoreObject ObjectStoreBucket SourceTrueIdentity SigintIntercept AccessScopedIntercept LawfulInterceptRecord DocumentSource DocumentChunk Quarantine RagAnswer Alert'.split(
    ' ',
  ),
);

export const types = signal<readonly TypeView[]>([]);
export const views = signal<readonly ViewOfTypes[]>([]);
export const agreements = signal<readonly Agreement[]>([]);
export const branches = signal<readonly BranchView[]>([]);
export const catalogError = signal<unknown>(null);

export async function loadCatalog(): Promise<void> {
  try {
    const [typeReply, branchReply] = await Promise.all([
      json<{ types: TypeView[]; views: ViewOfTypes[] }>(data('/types')),
      json<{ branches: BranchView[] }>(data('/schema/branches')),
      loadAgreements(),
    ]);
    types.value = typeReply.types.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    views.value = typeReply.views;
    branches.value = branchReply.branches;
    catalogError.value = null;
  } catch (error) {
    types.value = [];
    views.value = [];
    branches.value = [];
    catalogError.value = error;
  }
}

/** The tenant of the path on top, or the caller's own; null: none is named. */
export function tenantShown(): string | null {
  const path = terms.value.organization || (session.value?.caller?.organization ?? '');
  return path === '' ? null : path.split('/')[0]!;
}

/** Agreements of the tenant that is shown; none where the caller may not ask, which the view of them says. */
export async function loadAgreements(): Promise<void> {
  const tenant = tenantShown();
  const path = `/tenants/${encodeURIComponent(tenant ?? '')}/sharing`;
  agreements.value =
    tenant === null
      ? []
      : await json<{ agreements: Agreement[] }>(data(path)).then(
          (reply) => reply.agreements,
          () => [],
        );
}

export const keyOf = (type: string): string => types.value.find(({ name }) => name === type)?.primary_key ?? '_pk';

/** Statements of this browser, newest first. They never leave it. */
const historyKey = 'annals-history';
const historyMax = 200;

export function remembered(): readonly string[] {
  try {
    return JSON.parse(localStorage.getItem(historyKey) ?? '[]') as string[];
  } catch {
    return [];
  }
}

export function remember(sql: string): void {
  localStorage.setItem(historyKey, JSON.stringify([sql, ...remembered().filter((each) => each !== sql)].slice(0, historyMax)));
}

export interface KeptExhibit {
  readonly id: string;
  readonly title: string;
}

/** Exhibits that were opened in this browser, newest first: the store lists them to nobody. */
const exhibitsKey = 'annals-exhibits';
const exhibitsMax = 50;

export const keptExhibits = signal<readonly KeptExhibit[]>(
  (JSON.parse(localStorage.getItem(exhibitsKey) ?? '[]') as readonly (KeptExhibit | string)[]).flatMap((each) =>
    typeof each === 'string' ? [] : [each],
  ),
);

export function keepExhibit(id: string, title: string): void {
  keptExhibits.value = [{ id, title }, ...keptExhibits.value.filter((each) => each.id !== id)].slice(0, exhibitsMax);
  localStorage.setItem(exhibitsKey, JSON.stringify(keptExhibits.value));
}
