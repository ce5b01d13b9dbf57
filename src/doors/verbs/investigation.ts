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

const investigationVerb = { action: 'search', purpose: 'required', bucket: 'read' } as const;
const investigatedRow = z.record(z.string(), z.unknown());
const investigatedRows = z.array(investigatedRow);
const investigationLimit = z.int().min(1).max(1_000).default(100);

type InvestigatedRow = Record<string, unknown>;

async function askInvestigation(
  verbCall: VerbCall,
  investigationSql: string,
  investigationValues: readonly Literal[] = [],
): Promise<InvestigatedRow[]> {
  return [...shownRows(await verbCall.answer(investigationSql, investigationValues, 'current'))];
}

/** Types that play a role and that the caller may read. */
function readableRolePlayers({ snapshot: verbSnapshot }: VerbCall, domainRole: RoleName): readonly RoleType[] {
  return rolePlayers(
    verbSnapshot.catalog.types().filter(({ name }) => verbSnapshot.offers(name)),
    domainRole,
  );
}

/** The same; REL_UNKNOWN_TYPE where there are none. */
function requiredRolePlayers(verbCall: VerbCall, domainRole: RoleName): readonly RoleType[] {
  const playerColumns = readableRolePlayers(verbCall, domainRole);
  if (playerColumns.length === 0) throw new ServiceError('REL_UNKNOWN_TYPE', unplayedMessage(domainRole));
  return playerColumns;
}

export const investigateEntity = verb({
  ...investigationVerb,
  name: 'investigate_entity',
  description:
    'A thing from all sides at one instant: its rows and identifiers, the rows that are one with it, lists that name it, its neighbours, ' +
    'what became of it, and alerts about it.',
  input: z.object({
    entity_id: z.string().min(1).max(1_024).describe('an id, an identifier or a name'),
    limit: investigationLimit,
  }),
  output: z.object({
    entity_id: z.string(),
    cluster: investigatedRows,
    entities: z.array(z.object({ type: z.string(), row: investigatedRow })),
    identifiers: z.array(foundIdentifier),
    listed: investigatedRows,
    connections: investigatedRows,
    timeline: z.array(timelineEvent),
    alerts: investigatedRows,
  }),
  units: 5,
  tool: { title: 'Investigation', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: investigatedId, limit: rowLimit }) => {
    const identityCluster = await askInvestigation(verbCall, `SELECT * FROM RESOLVE_IDENTITY($1) LIMIT ${rowLimit}`, [
      investigatedId,
    ]);
    const clusterEntities: { type: string; row: InvestigatedRow }[] = [];
    const sanctionHits: InvestigatedRow[] = [];
    const neighbourRows: InvestigatedRow[] = [];
    const clusterIdentifiers: z.output<typeof foundIdentifier>[] = [];
    const clusterTimeline: z.output<typeof timelineEvent>[] = [];
    const alertsFound: InvestigatedRow[] = [];
    const hasListings = readableRolePlayers(verbCall, 'listing').length > 0;
    for (const { nodeId, type: roleType } of identityCluster.slice(0, clusterMembersMax)) {
      const [memberKey, memberType] = [String(nodeId), String(roleType)];
      for (const memberRow of await askInvestigation(verbCall, `SELECT * FROM ${quote(memberType)} WHERE _pk = $1`, [
        memberKey,
      ])) {
        clusterEntities.push({ type: memberType, row: memberRow });
        clusterIdentifiers.push(...identifiersOf(verbCall, verbCall.type(memberType), memberRow));
        const partyName = typeof memberRow['name'] === 'string' ? memberRow['name'] : null;
        if (partyName !== null && hasListings)
          sanctionHits.push(
            ...(await askInvestigation(verbCall, `SELECT * FROM SANCTIONS_SCREEN($1) LIMIT ${rowLimit}`, [partyName])),
          );
      }
      neighbourRows.push(
        ...(await askInvestigation(verbCall, `SELECT * FROM NETWORK_EXPAND($1, MAX_HOPS => 1) LIMIT ${rowLimit}`, [memberKey])),
      );
      alertsFound.push(
        ...(await investigatedAlerts(verbCall, 'matched_type = $1 AND matched_pk = $2', [memberType, memberKey], rowLimit)),
      );
    }
    // Rows of several types under one key are one thing with one history.
    const memberKeys = new Set(identityCluster.slice(0, clusterMembersMax).map(({ nodeId }) => String(nodeId)));
    for (const key of memberKeys) clusterTimeline.push(...(await timelineOf(verbCall, key, rowLimit)).events);
    clusterTimeline.sort(byTime);
    verbCall.note({ result: { members: identityCluster.length } });
    return {
      entity_id: investigatedId,
      cluster: identityCluster,
      entities: clusterEntities,
      identifiers: clusterIdentifiers,
      listed: sanctionHits,
      connections: neighbourRows,
      timeline: clusterTimeline.slice(-rowLimit),
      alerts: alertsFound,
    };
  },
});

/** Members of a cluster that are looked into. */
const clusterMembersMax = 32;

/** Alerts that meet a condition, the newest first; none before a rule raised one, or where the caller may not read them. */
async function investigatedAlerts(
  verbCall: VerbCall,
  alertCondition: string,
  alertValues: readonly Literal[],
  alertLimit: number,
): Promise<InvestigatedRow[]> {
  const { catalog: typeCatalog, offers: offersType } = verbCall.snapshot;
  const alertType = alertTypeIn(typeCatalog);
  if (typeCatalog.type(alertType) === undefined || !offersType(alertType)) return [];
  return askInvestigation(
    verbCall,
    `SELECT * FROM ${quote(alertType)} WHERE ${alertCondition} ORDER BY system_from DESC, _pk LIMIT ${alertLimit}`,
    alertValues,
  );
}

export const getCaseSummary = verb({
  ...investigationVerb,
  name: 'get_case_summary',
  description: 'A case with its subjects and its notes, oldest first.',
  input: z.object({ case_id: z.string().min(1), limit: investigationLimit }),
  output: z.object({ case_id: z.string(), cases: investigatedRows, notes: investigatedRows }),
  units: 5,
  tool: { title: 'Case', readOnly: true },
  example: { case_id: 'a memory' },
  run: async (verbCall, { case_id: investigatedId, limit: rowLimit }) => {
    const caseRows: InvestigatedRow[] = [];
    const caseNotes: InvestigatedRow[] = [];
    for (const { type: roleType } of requiredRolePlayers(verbCall, 'case'))
      caseRows.push(...(await askInvestigation(verbCall, `SELECT * FROM ${quote(roleType)} WHERE _pk = $1`, [investigatedId])));
    for (const { type, columns: roleColumns } of readableRolePlayers(verbCall, 'case_note')) {
      const roleSql = `SELECT * FROM ${quote(type)} WHERE ${quote(roleColumns.get('case_id')!)} = $1 ORDER BY system_from LIMIT ${rowLimit}`;
      caseNotes.push(...(await askInvestigation(verbCall, roleSql, [investigatedId])));
    }
    verbCall.note({ result: { cases: caseRows.length, notes: caseNotes.length } });
    return { case_id: investigatedId, cases: caseRows, notes: caseNotes };
  },
});

export const findThreats = verb({
  ...investigationVerb,
  name: 'find_threats',
  description: 'What threatens now: parties that are on a list, incidents that are open, and open alerts, the newest first.',
  input: z.object({ limit: investigationLimit }),
  output: z.object({
    listed: investigatedRows,
    screened: z.int(),
    truncated: z.boolean(),
    incidents: investigatedRows,
    alerts: investigatedRows,
  }),
  units: 5,
  tool: { title: 'Threats', readOnly: true },
  example: {},
  run: async (verbCall, { limit: rowLimit }) => {
    const sanctionHits: InvestigatedRow[] = [];
    let screenedCount = 0;
    let hasMoreParties = false;
    if (readableRolePlayers(verbCall, 'listing').length > 0) {
      for (const { type: roleType, columns: roleColumns } of readableRolePlayers(verbCall, 'party')) {
        const partyName = quote(roleColumns.get('name')!);
        const roleSql = `SELECT _pk, ${partyName} AS name FROM ${quote(roleType)} WHERE ${partyName} IS NOT NULL ORDER BY system_from DESC LIMIT ${screenedPartiesMax + 1}`;
        const partyRows = await askInvestigation(verbCall, roleSql);
        hasMoreParties ||= partyRows.length > screenedPartiesMax;
        for (const partyRow of partyRows.slice(0, screenedPartiesMax)) {
          screenedCount++;
          const listingHits = await askInvestigation(verbCall, 'SELECT * FROM SANCTIONS_SCREEN($1) LIMIT 5', [
            String(partyRow['name']),
          ]);
          for (const listingHit of listingHits)
            sanctionHits.push({ party: partyRow['_pk'], party_type: roleType, ...listingHit });
        }
      }
    }
    const incidentRows =
      readableRolePlayers(verbCall, 'incident').length === 0
        ? []
        : await askInvestigation(verbCall, `SELECT * FROM DISPATCH_PRIORITY() LIMIT ${rowLimit}`);
    const alertsFound = await investigatedAlerts(verbCall, "status = 'open'", [], rowLimit);
    verbCall.note({ result: { listed: sanctionHits.length, incidents: incidentRows.length, alerts: alertsFound.length } });
    return {
      listed: sanctionHits.slice(0, rowLimit),
      screened: screenedCount,
      truncated: hasMoreParties || sanctionHits.length > rowLimit,
      incidents: incidentRows,
      alerts: alertsFound,
    };
  },
});

/** Parties of a type that are screened in one call: the newest. */
const screenedPartiesMax = 100;

const rolesByDomain: Readonly<Record<string, readonly RoleName[]>> = {
  identity: ['party', 'account', 'listing'],
  ownership: ['party', 'ownership'],
  money: ['transfer'],
  places: ['sighting', 'incident', 'unit'],
  social: ['account', 'post'],
  cases: ['case', 'case_note'],
};

export const getDomainSummary = verb({
  ...investigationVerb,
  name: 'get_domain_summary',
  description:
    'What there is of a domain: the types that play its roles, which roles nobody plays, and how many rows each type has.',
  input: z.object({ domain: z.enum(Object.keys(rolesByDomain) as [string, ...string[]]) }),
  output: z.object({
    domain: z.string(),
    types: z.array(z.object({ role: z.string(), type: z.string(), rows: z.int() })),
    missing: z.array(z.object({ role: z.string(), default_type: z.string() })),
  }),
  units: 2,
  tool: { title: 'Domain', readOnly: true },
  example: { domain: 'social' },
  run: async (verbCall, { domain: domainName }) => {
    const domainTypes: { role: string; type: string; rows: number }[] = [];
    const missingRoles: { role: string; default_type: string }[] = [];
    for (const domainRole of rolesByDomain[domainName]!) {
      const playingTypes = readableRolePlayers(verbCall, domainRole);
      if (playingTypes.length === 0) missingRoles.push({ role: domainRole, default_type: roles[domainRole].defaultType });
      for (const { type: roleType } of playingTypes) {
        const [countedRows] = await askInvestigation(verbCall, `SELECT COUNT(*) AS n FROM ${quote(roleType)}`);
        domainTypes.push({ role: domainRole, type: roleType, rows: Number(countedRows?.['n'] ?? 0) });
      }
    }
    verbCall.note({ result: { types: domainTypes.length } });
    return { domain: domainName, types: domainTypes, missing: missingRoles };
  },
});

export const findInSocialCorpus = verb({
  ...investigationVerb,
  name: 'find_in_social_corpus',
  description: 'Posts that say something, best first.',
  input: z.object({ query: z.string().min(1).max(4_096), limit: investigationLimit }),
  output: z.object({ posts: z.array(z.object({ type: z.string(), row: investigatedRow })) }),
  units: 2,
  tool: { title: 'Posts', readOnly: true },
  example: { query: 'words' },
  run: async (verbCall, { query: postQuery, limit: rowLimit }) => {
    const postRows: { type: string; row: InvestigatedRow }[] = [];
    for (const { type: roleType, columns: roleColumns } of requiredRolePlayers(verbCall, 'post')) {
      const roleSql = `SELECT *, _score FROM ${quote(roleType)} WHERE MATCH(${quote(roleColumns.get('text')!)}, $1) ORDER BY _score DESC, _pk LIMIT ${rowLimit}`;
      for (const memberRow of await askInvestigation(verbCall, roleSql, [postQuery]))
        postRows.push({ type: roleType, row: memberRow });
    }
    postRows.sort(
      (postA, postB) =>
        Number(postB.row['_score']) - Number(postA.row['_score']) ||
        compareText(String(postA.row['_pk']), String(postB.row['_pk'])),
    );
    postRows.splice(rowLimit);
    verbCall.note({ result: { posts: postRows.length } });
    return { posts: postRows };
  },
});
