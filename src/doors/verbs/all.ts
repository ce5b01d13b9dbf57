/** Every verb there is: routes, tools, documentation, leak probes and audit tests read this list. */
import { associate, associateBatch } from './memory/associate.ts';
import { consolidate, recognize, resolve } from './memory/consolidate.ts';
import { forget } from './memory/forget.ts';
import { justify, liftQuarantine, quarantine } from './memory/justify.ts';
import { recall, replayRecall } from './memory/recall.ts';
import { remember, rememberBatch } from './memory/remember.ts';
import { episodesIn, summarise } from './memory/summarise.ts';
import { ingestDocument, ragStoreAnswer, ragStoreElements } from './documents/document-tools.ts';
import {
  beneficialOwnership,
  geofence,
  reconstructWire,
  resolveEntityIdentity,
  screenSanctions,
  traceCrypto,
  traceHawala,
} from './domain.ts';
import { addCaseNote } from './case-notes.ts';
import { similarMultimodal } from './similar-multimodal.ts';
import { detectCommunities, findScc, hubAuthority, pathsBetween, predictLinks, rankKeyNodes } from './graph.ts';
import { findConnections, getEntityProfile, getTimeline, lookupIdentity } from './entity.ts';
import { hybridSearch } from './hybrid.ts';
import { findInSocialCorpus, findThreats, getCaseSummary, getDomainSummary, investigateEntity } from './investigation.ts';
import { nlQuery } from './nl-query.ts';
import { jobStatus, listJobs, scheduleJobVerb } from './jobs.ts';
import { eraseSubject, getAuditTrail, metrics, serverHealth } from './store-administration.ts';
import { aggregateStats, explainPolicy, getEntities, listEntityTypes, query, queryKnowledge } from './query.ts';
import { getRelationships, listLinkTypes } from './relationships.ts';
import { createRule, importSigmaRules, listRules } from './rules.ts';
import { searchEntities, searchKnowledge } from './search.ts';
import { suggestExtensions } from './suggest-extensions.ts';
import type { Verb } from './verb.ts';
import { listWorkflows, runWorkflow, workflowStatus } from './workflows.ts';

export const verbs: readonly Verb[] = [
  remember,
  rememberBatch,
  recall,
  recognize,
  episodesIn,
  justify,
  consolidate,
  forget,
  associate,
  associateBatch,
  resolve,
  summarise,
  quarantine,
  liftQuarantine,
  replayRecall,
  query,
  queryKnowledge,
  explainPolicy,
  nlQuery,
  hybridSearch,
  similarMultimodal,
  searchKnowledge,
  searchEntities,
  ingestDocument,
  ragStoreElements,
  ragStoreAnswer,
  listEntityTypes,
  getEntities,
  aggregateStats,
  getRelationships,
  listLinkTypes,
  pathsBetween,
  detectCommunities,
  rankKeyNodes,
  hubAuthority,
  findScc,
  predictLinks,
  lookupIdentity,
  resolveEntityIdentity,
  investigateEntity,
  getCaseSummary,
  addCaseNote,
  findThreats,
  getDomainSummary,
  findInSocialCorpus,
  getEntityProfile,
  getTimeline,
  findConnections,
  suggestExtensions,
  traceCrypto,
  beneficialOwnership,
  reconstructWire,
  traceHawala,
  geofence,
  screenSanctions,
  getAuditTrail,
  createRule,
  listRules,
  importSigmaRules,
  scheduleJobVerb,
  listJobs,
  jobStatus,
  listWorkflows,
  runWorkflow,
  workflowStatus,
  serverHealth,
  metrics,
  eraseSubject,
];
