/** Control statements: each has its own action at the gate, and answers with rows about its effect. */
import { forkBranch } from './branch-control.ts';
import type { ControlRequest } from './control-request.ts';
import { eraseSubject } from './erasure-control.ts';
import { fuseIdentities, splitIdentities } from './identity-control.ts';
import { explainReplay } from './replay.ts';
import { dropLookup, registerLookup } from './lookup-control.ts';
import { createMaterializedView, createView, dropMaterializedView, dropView, replaceView } from './view-control.ts';
import { watch } from './watch-control.ts';
import type { Answer } from '../planner-contract.ts';
import type { ControlWhat } from '../syntax/statement.ts';

type ControlRunner = (request: ControlRequest) => Promise<Answer>;

export async function runControl(request: ControlRequest): Promise<Answer> {
  return controlsByStatement[request.statement.what](request);
}

const controlsByStatement: { readonly [W in ControlWhat]: ControlRunner } = {
  branch: forkBranch,
  'register-lookup': registerLookup,
  'drop-lookup': dropLookup,
  'create-view': createView,
  'replace-view': replaceView,
  'drop-view': dropView,
  'create-materialized-view': createMaterializedView,
  'drop-materialized-view': dropMaterializedView,
  watch,
  'explain-replay': explainReplay,
  'erase-subject': eraseSubject,
  'fuse-identities': fuseIdentities,
  'split-identities': splitIdentities,
};
