/** Every route there is, by listener: registration, /openapi.json, leak probes and the suites of routes read these lists. */
import { flatToolRoutes } from '../../mcp/http-routes.ts';
import { rpcRoutes } from '../../mcp/json-rpc.ts';
import type { Route } from '../route.ts';
import { adminAuditRoutes, auditRoutes } from './audit.ts';
import { adminAuditExportRoutes, auditExportRoutes } from './audit-export.ts';
import { backupRoutes } from './backups.ts';
import { branchRoutes } from './branches.ts';
import { compactRoutes } from './compact.ts';
import { adminConsoleRoutes } from './console.ts';
import { exhibitRoutes } from './exhibits.ts';
import { exportRoutes } from './export.ts';
import { graphqlRoutes } from './graphql.ts';
import { ingestRoutes } from './ingest.ts';
import { adminJobRoutes, jobRoutes } from './jobs.ts';
import { adminLaterRoutes, laterRoutes } from './unbuilt-routes.ts';
import { lookupRoutes } from './lookup.ts';
import { adminOpenTransactionRoutes, openTransactionRoutes } from './open-transactions.ts';
import { patchRowRoutes } from './patch-row.ts';
import { platformRoutes } from './platform.ts';
import { policyRoutes } from './policies.ts';
import { proofRoutes } from './proof.ts';
import { queryRoutes } from './query.ts';
import { queryStreamRoutes } from './query-stream.ts';
import { reindexRoutes } from './reindex.ts';
import { rotateKeyRoutes } from './rotate-key.ts';
import { ruleRoutes } from './rules.ts';
import { schemaRoutes } from './schema.ts';
import { searchRoutes } from './search.ts';
import { sharingRoutes } from './sharing.ts';
import { sparqlRoutes } from './sparql.ts';
import { systemRoutes } from './system.ts';
import { tenantRoutes } from './tenants.ts';
import { adminTokenRoutes, ownTokenRoutes } from './tokens.ts';
import { transactionRoutes } from './transactions.ts';
import { typeRetentionRoutes } from './type-retention.ts';
import { verbRoutes } from './verbs.ts';
import { watchRoutes } from './watch.ts';
import { workflowRoutes } from './workflows.ts';

export const dataRoutes: readonly Route[] = [
  ...queryRoutes,
  ...queryStreamRoutes,
  ...searchRoutes,
  ...graphqlRoutes,
  ...sparqlRoutes,
  ...watchRoutes,
  ...lookupRoutes,
  ...exportRoutes,
  ...ingestRoutes,
  ...exhibitRoutes,
  ...schemaRoutes,
  ...typeRetentionRoutes,
  ...patchRowRoutes,
  ...jobRoutes,
  ...ruleRoutes,
  ...workflowRoutes,
  ...transactionRoutes,
  ...openTransactionRoutes,
  ...branchRoutes,
  ...auditRoutes,
  ...auditExportRoutes,
  ...proofRoutes,
  ...ownTokenRoutes,
  ...tenantRoutes,
  ...sharingRoutes,
  ...verbRoutes,
  ...flatToolRoutes,
  ...rpcRoutes,
  ...systemRoutes,
  ...laterRoutes,
];

export const adminRoutes: readonly Route[] = [
  ...adminTokenRoutes,
  ...adminAuditRoutes,
  ...adminAuditExportRoutes,
  ...backupRoutes,
  ...compactRoutes,
  ...reindexRoutes,
  ...adminJobRoutes,
  ...adminOpenTransactionRoutes,
  ...rotateKeyRoutes,
  ...platformRoutes,
  ...policyRoutes,
  ...adminConsoleRoutes,
  ...adminLaterRoutes,
];
