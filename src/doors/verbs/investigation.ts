/** Tools that bring several functions together on one snapshot: an entity, a case, a domain, what threatens. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { compareText } from '../../log/values/value.ts';
import { type RoleName, type RoleType, rolePlayers, roles, unplayedMessage } from '../../planner/table-functions/domain/roles.ts';
import type { Literal } from '../../planner/syntax/statement.ts';
import { alertTypeIn } from '../../planner/continuous/rules/alerts.ts';
import { byTime, foundIdentifier, identifiersOf, timelineEvent, timelineOf } from './entity.ts';
import { shownRows } from './query.ts';
import { quote } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const common = { action: 'search', purpose: 'required', bucket: 'read' } as const;
const shownRow = z.record(z.string(), z.unknown());
const rowsOut = z.array(shownRow);
const limit = z.int().min(1).max(1_000).default(100);

type Shown = Record<string, unknown>;

async function rowsFor(verbCall: VerbCall, sql: string, values: readonly Literal[] = []): Promise<Shown[]> {
  return [...shownRows(await verbCall.answer(sql, values, 'current'))];
}

/** Types that play a role and that the caller may read. */
function players({ snapshot }: VerbCall, role: RoleName): readonly RoleType[] {
  return rolePlayers(
    snapshot.catalog.types().filter(({ name }) => snapshot.offers(name)),
    role,
  );
}

/** The same; REL_UNKNOWN_TYPE where there are none. */
function playersOf(verbCall: VerbCall, role: RoleName): readonly RoleType[] {
  const playerColumns = players(verbCall, role);
  if (playerColumns.length === 0) throw new ServiceError('REL_UNKNOWN_TYPE', unplayedMessage(role));
  return playerColumns;
}

export const investigateEntity = verb({
  ...common,
  name: 'investigate_entity',
  description:
    'A thing from all sides at one instant: its rows and identifiers, the rows that are one with it, lists that name it, its neighbours, ' +
    'what became of it, and alerts about it.',
  input: z.object({ entity_id: z.string().min(1).max(1_024).describe('an id, an identifier or a name'), limit }),
  output: z.object({
    entity_id: z.string(),
    cluster: rowsOut,
    entities: z.array(z.object({ type: z.string(), row: shownRow })),
    identifiers: z.array(foundIdentifier),
    listed: rowsOut,
    connections: rowsOut,
    timeline: z.array(timelineEvent),
    alerts: rowsOut,
  }),
  units: 5,
  tool: { title: 'Investigation', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: id, limit: most }) => {
    const cluster = await rowsFor(verbCall, `SELECT * FROM RESOLVE_IDENTITY($1) LIMIT ${most}`, [id]);
    const entities: { type: string; row: Shown }[] = [];
    const listed: Shown[] = [];
    const connections: Shown[] = [];
    const identifiers: z.output<typeof foundIdentifier>[] = [];
    const timeline: z.output<typeof timelineEvent>[] = [];
    const alerts: Shown[] = [];
    const isScreened = players(verbCall, 'listing').length > 0;
    for (const { nodeId, type } of cluster.slice(0, membersMax)) {
      const [key, of] = [String(nodeId), String(type)];
      for (const row of await rowsFor(verbCall, `SELECT * FROM ${quote(of)} WHERE _pk = $1`, [key])) {
        entities.push({ type: of, row });
        identifiers.push(...identifiersOf(verbCall, verbCall.type(of), row));
        const name = typeof row['name'] === 'string' ? row['name'] : null;
        if (name !== null && isScreened)
          listed.push(...(await rowsFor(verbCall, `SELECT * FROM SANCTIONS_SCREEN($1) LIMIT ${most}`, [name])));
      }
      connections.push(...(await rowsFor(verbCall, `SELECT * FROM NETWORK_EXPAND($1, MAX_HOPS => 1) LIMIT ${most}`, [key])));
      alerts.push(...(await alertRows(verbCall, 'matched_type = $1 AND matched_pk = $2', [of, key], most)));
    }
    // Rows of several types under one key are one thing with one history.
    const keys = new Set(cluster.slice(0, membersMax).map(({ nodeId }) => String(nodeId)));
    for (const key of keys) timeline.push(...(await timelineOf(verbCall, key, most)).events);
    timeline.sort(byTime);
    verbCall.note({ result: { members: cluster.length } });
    return { entity_id: id, cluster, entities, identifiers, listed, connections, timeline: timeline.slice(-most), alerts };
  },
});

/** Members of a cluster that are looked into. */
const membersMax = 32;

/** Alerts that meet a condition, the newest first; none before a rule raised one, or where the caller may not read them. */
async function alertRows(verbCall: VerbCall, condition: string, values: readonly Literal[], most: number): Promise<Shown[]> {
  const { catalog, offers } = verbCall.snapshot;
  const type = alertTypeIn(catalog);
  if (catalog.type(type) === undefined || !offers(type)) return [];
  return rowsFor(
    verbCall,
    `SELECT * FROM ${quote(type)} WHERE ${condition} ORDER BY system_from DESC, _pk LIMIT ${most}`,
    values,
  );
}

export const getCaseSummary = verb({
  ...common,
  name: 'get_case_summary',
  description: 'A case with its subjects and its notes, oldest first.',
  input: z.object({ case_id: z.string().min(1), limit }),
  output: z.object({ case_id: z.string(), cases: rowsOut, notes: rowsOut }),
  units: 5,
  tool: { title: 'Case', readOnly: true },
  example: { case_id: 'a memory' },
  run: async (verbCall, { case_id: id, limit: most }) => {
    const cases: Shown[] = [];
    const notes: Shown[] = [];
    for (const { type } of playersOf(verbCall, 'case'))
      cases.push(...(await rowsFor(verbCall, `SELECT * FROM ${quote(type)} WHERE _pk = $1`, [id])));
    for (const { type, columns } of players(verbCall, 'case_note')) {
      const sql = `SELECT * FROM ${quote(type)} WHERE ${quote(columns.get('case_id')!)} = $1 ORDER BY system_from LIMIT ${most}`;
      notes.push(...(await rowsFor(verbCall, sql, [id])));
    }
    verbCall.note({ result: { cases: cases.length, notes: notes.length } });
    return { case_id: id, cases, notes };
  },
});

export const findThreats = verb({
  ...common,
  name: 'find_threats',
  description: 'What threatens now: parties that are on a list, incidents that are open, and open alerts, the newest first.',
  input: z.object({ limit }),
  output: z.object({ listed: rowsOut, screened: z.int(), truncated: z.boolean(), incidents: rowsOut, alerts: rowsOut }),
  units: 5,
  tool: { title: 'Threats', readOnly: true },
  example: {},
  run: async (verbCall, { limit: most }) => {
    const listed: Shown[] = [];
    let screened = 0;
    let isCut = false;
    if (players(verbCall, 'listing').length > 0) {
      for (const { type, columns } of players(verbCall, 'party')) {
        const name = quote(columns.get('name')!);
        const sql = `SELECT _pk, ${name} AS name FROM ${quote(type)} WHERE ${name} IS NOT NULL ORDER BY system_from DESC LIMIT ${screenedMax + 1}`;
        const parties = await rowsFor(verbCall, sql);
        isCut ||= parties.length > screenedMax;
        for (const party of parties.slice(0, screenedMax)) {
          screened++;
          const hits = await rowsFor(verbCall, 'SELECT * FROM SANCTIONS_SCREEN($1) LIMIT 5', [String(party['name'])]);
          for (const hit of hits) listed.push({ party: party['_pk'], party_type: type, ...hit });
        }
      }
    }
    const incidents =
      players(verbCall, 'incident').length === 0
        ? []
        : await rowsFor(verbCall, `SELECT * FROM DISPATCH_PRIORITY() LIMIT ${most}`);
    const alerts = await alertRows(verbCall, "status = 'open'", [], most);
    verbCall.note({ result: { listed: listed.length, incidents: incidents.length, alerts: alerts.length } });
    return { listed: listed.slice(0, most), screened, truncated: isCut || listed.length > most, incidents, alerts };
  },
});

/** Parties of a type that are screened in one call: the newest. */
const screenedMax = 100;

const domains: Readonly<Record<string, readonly RoleName[]>> = {
  identity: ['party', 'account', 'listing'],
  ownership: ['party', 'ownership'],
  money: ['transfer'],
  places: ['sighting', 'incident', 'unit'],
  social: ['account', 'post'],
  cases: ['case', 'case_note'],
};

export const getDomainSummary = verb({
  ...common,
  name: 'get_domain_summary',
  description:
    'What there is of a domain: the types that play its roles, which roles nobody plays, and how many rows each type has.',
  input: z.object({ domain: z.enum(Object.keys(domains) as [string, ...string[]]) }),
  output: z.object({
    domain: z.string(),
    types: z.array(z.object({ role: z.string(), type: z.string(), rows: z.int() })),
    missing: z.array(z.object({ role: z.string(), default_type: z.string() })),
  }),
  units: 2,
  tool: { title: 'Domain', readOnly: true },
  example: { domain: 'social' },
  run: async (verbCall, { domain }) => {
    const types: { role: string; type: string; rows: number }[] = [];
    const missing: { role: string; default_type: string }[] = [];
    for (const role of domains[domain]!) {
      const playing = players(verbCall, role);
      if (playing.length === 0) missing.push({ role, default_type: roles[role].defaultType });
      for (const { type } of playing) {
        const [counted] = await rowsFor(verbCall, `SELECT COUNT(*) AS n FROM ${quote(type)}`);
        types.push({ role, type, rows: Number(counted?.['n'] ?? 0) });
      }
    }
    verbCall.note({ result: { types: types.length } });
    return { domain, types, missing };
  },
});

export const findInSocialCorpus = verb({
  ...common,
  name: 'find_in_social_corpus',
  description: 'Posts that say something, best first.',
  input: z.object({ query: z.string().min(1).max(4_096), limit }),
  output: z.object({ posts: z.array(z.object({ type: z.string(), row: shownRow })) }),
  units: 2,
  tool: { title: 'Posts', readOnly: true },
  example: { query: 'words' },
  run: async (verbCall, { query, limit: most }) => {
    const posts: { type: string; row: Shown }[] = [];
    for (const { type, columns } of playersOf(verbCall, 'post')) {
      const sql = `SELECT *, _score FROM ${quote(type)} WHERE MATCH(${quote(columns.get('text')!)}, $1) ORDER BY _score DESC, _pk LIMIT ${most}`;
      for (const row of await rowsFor(verbCall, sql, [query])) posts.push({ type, row });
    }
    posts.sort(
      (a, b) => Number(b.row['_score']) - Number(a.row['_score']) || compareText(String(a.row['_pk']), String(b.row['_pk'])),
    );
    posts.splice(most);
    verbCall.note({ result: { posts: posts.length } });
    return { posts };
  },
});
