/** Imports Sigma rules, on a route and as a tool: good ones stay, whatever is wrong with the others. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { PlannerDoor } from '../../planner/planner-contract.ts';
import { record } from '../shared/schema-check.ts';
import { splitDocuments } from '../../planner/continuous/sigma/parse-rules.ts';
import { exactJson } from '../shared/write-exact-json.ts';

import type { DetectionDefinition, RuleRecord } from '../../projections/rules/rule.ts';

/** Documents of one import. */
export const documentsMax = 10_000;

export function tooManyDocuments(): ServiceError {
  return new ServiceError('REL_INVALID', `an import has at most ${documentsMax} rules`);
}

const sigmaDefaultType = 'Event';

export const sigmaInput = {
  rules: z
    .union([z.string(), z.array(z.union([z.string(), record(z.unknown())])).max(documentsMax)])
    .describe('YAML, of several documents too, or a list of rules as YAML or as objects'),
};

export const sigmaType = z.string().default(sigmaDefaultType).describe('the type whose rows are judged');

export const sigmaReply = z.object({
  imported: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  rejected: z.int(),
  results: z.array(
    z.object({
      id: z.string().nullable().describe('of the Sigma rule, as it states it'),
      title: z.string().nullable(),
      status: z.enum(['imported', 'updated', 'unchanged', 'rejected']),
      rule_id: z.string().nullable().describe('by which /rules knows it'),
      error: z.object({ code: z.string(), path: z.string(), detail: z.string() }).optional(),
    }),
  ),
});

type SigmaReply = z.output<typeof sigmaReply>;
type SigmaResult = SigmaReply['results'][number];

export interface SigmaImport {
  readonly rules: string | readonly (string | Readonly<Record<string, unknown>>)[];
  readonly objectType: string;
  readonly signal?: AbortSignal | undefined;
}

export async function importSigma(
  sigmaInvocation: Invocation,
  sigmaPlanner: Pick<PlannerDoor, 'readSigma' | 'turns'>,
  sigmaImport: SigmaImport,
): Promise<SigmaReply> {
  const sigmaTexts = typeof sigmaImport.rules === 'string' ? [sigmaImport.rules] : sigmaImport.rules;
  const takeTurn = sigmaPlanner.turns(sigmaImport.signal);
  const sigmaDocuments: string[] = [];
  for (const sigmaText of sigmaTexts)
    for (const sigmaDocument of typeof sigmaText === 'string' ? splitDocuments(sigmaText) : [exactJson(sigmaText)]) {
      if (sigmaDocuments.length === documentsMax) throw tooManyDocuments();
      sigmaDocuments.push(sigmaDocument);
      await takeTurn();
    }
  const { objectType: judgedType } = sigmaImport;
  sigmaInvocation.describe({ template: 'sigma rules ?', literals: [String(sigmaDocuments.length)], objectType: judgedType });
  const sigmaSnapshot = sigmaInvocation.snapshot();
  const ownRules = sigmaSnapshot.rules().filter(({ owner: ruleOwner }) => ruleOwner === sigmaSnapshot.caller.path);
  const parsedSigma = await sigmaPlanner.readSigma(sigmaSnapshot, sigmaDocuments, sigmaImport.signal);
  const ruleIdByName = new Map(ownRules.map((ownRule) => [ownRule.definition.name, ownRule.id]));
  const existingRules = new Map(ownRules.map((ownRule) => [ownRule.id, ownRule]));
  const sigmaResults: SigmaResult[] = [];
  for (const [i, parsedDocument] of parsedSigma.entries()) {
    if (parsedDocument.document === null) {
      sigmaResults.push({
        id: parsedDocument.id,
        title: parsedDocument.title,
        status: 'rejected',
        rule_id: null,
        error: parsedDocument.error,
      });
      continue;
    }
    const importedRuleId = sigmaRuleId(sigmaSnapshot.caller.path, parsedDocument.document.id ?? parsedDocument.document.title);
    const detectionDefinition: DetectionDefinition = {
      kind: 'detection',
      name: freeRuleName(parsedDocument.document.title, importedRuleId, ruleIdByName),
      language: 'sigma',
      condition: sigmaDocuments[i]!,
      object_type: judgedType,
      severity: parsedDocument.document.level ?? 'medium',
      enabled: true,
      dedupe_by: [],
      window_secs: 3_600,
      interval_secs: 60,
      purpose: sigmaSnapshot.purpose,
    };
    ruleIdByName.set(detectionDefinition.name, importedRuleId);
    const importStatus = await putSigmaRule(
      sigmaInvocation,
      importedRuleId,
      detectionDefinition,
      existingRules.get(importedRuleId),
    );
    sigmaResults.push({
      id: parsedDocument.document.id,
      title: parsedDocument.document.title,
      status: importStatus,
      rule_id: importedRuleId,
    });
  }
  const countStatus = (countedStatus: SigmaResult['status']): number =>
    sigmaResults.filter((sigmaResult) => sigmaResult.status === countedStatus).length;
  sigmaInvocation.describe({ rowCount: sigmaResults.length - countStatus('rejected') });
  return {
    imported: countStatus('imported'),
    updated: countStatus('updated'),
    unchanged: countStatus('unchanged'),
    rejected: countStatus('rejected'),
    results: sigmaResults,
  };
}

async function putSigmaRule(
  sigmaInvocation: Invocation,
  importedRuleId: string,
  detectionDefinition: DetectionDefinition,
  earlierRule: RuleRecord | undefined,
): Promise<'imported' | 'updated' | 'unchanged'> {
  const { changed: isRuleChanged } = await sigmaInvocation.submit(
    {
      kind: 'put-rule',
      id: importedRuleId,
      definition: detectionDefinition,
      author: { credential: 'none', token: null },
      ...(earlierRule !== undefined && { changes: importedRuleId }),
    },
    { sync: true },
  );
  return !isRuleChanged ? 'unchanged' : earlierRule === undefined ? 'imported' : 'updated';
}

/** The same rule has the same id whenever it is imported, and another one under every other organisation path. */
function sigmaRuleId(ownerPath: string | null, sigmaId: string): string {
  const sigmaHash = createHash('sha256')
    .update(JSON.stringify(['sigma', ownerPath, sigmaId.toLowerCase()]))
    .digest('hex');
  return `sigma-${sigmaHash.slice(0, 32)}`;
}

/** Rules have different names; Sigma rules may have one title. */
function freeRuleName(sigmaTitle: string, importedRuleId: string, ruleIdByName: ReadonlyMap<string, string>): string {
  // oxlint-disable-next-line no-control-regex
  const plainTitle = sigmaTitle.toWellFormed().replaceAll(/[\x00-\x1f]/g, ' ');
  const ruleName = plainTitle.slice(0, 128).toWellFormed();
  const nameHolder = ruleIdByName.get(ruleName);
  return nameHolder === undefined || nameHolder === importedRuleId
    ? ruleName
    : `${plainTitle.slice(0, 84).toWellFormed()} (${importedRuleId})`;
}
