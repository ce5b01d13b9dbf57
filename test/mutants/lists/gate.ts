/** Mistakes about decisions at the gate: policies, guards, standing, rows that are written, streams that go on. */
import type { Mutant } from '../mutant.ts';

const policies = ['test/governance/gate-policies.test.ts'];
const guards = ['test/governance/guards.test.ts'];
const writes = ['test/governance/write-checks.test.ts'];
const guardsFile = 'src/governance/authorization/guards.ts';
const rowCheck = 'src/projections/rows/checks/row-check.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'gate: policies that are installed decide nothing',
    file: 'src/governance/authorization/judge.ts',
    find: "if (policies.digest === '') return decide(this.rules, request);",
    replace: 'if (policies.epoch >= 0) return decide(this.rules, request);',
    killedBy: policies,
  },
  {
    name: 'gate: a suspended tenant goes on',
    file: 'src/governance/admission/admission.ts',
    find: 'if (request.whileSuspended !== true) checkTenantStatus(this.#core.parts.projections.tenants, caller);',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'gate: what is shared is written into',
    file: 'src/governance/writing/governed-writes.ts',
    find: 'if (this.#description.caller.sharedFrom !== null) throw foreign();\n',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'guards: any reason opens',
    file: guardsFile,
    find: "return caller.roles.includes('break-glass') || this.#openingPermits.permitsOpening(this.#guardedOpening, type) ? null : 'no right';",
    replace: 'return null;',
    killedBy: guards,
  },
  {
    name: 'guards: closed types are written into',
    file: 'src/governance/writing/governed-writes.ts',
    find: 'this.#checkGuards(part);',
    replace: '',
    killedBy: guards,
  },
  {
    name: 'writes: a row is judged by another organisation’s version of its key',
    file: rowCheck,
    find: 'keys, paths: [pathCode] }',
    replace: 'keys }',
    killedBy: writes,
  },
  {
    name: 'proofs: rows are proven that are not shown',
    file: 'src/governance/desks/invocation-desks.ts',
    find: 'return seesEverything || this.#mayProveRow(paths, type, systemFrom);',
    replace: 'return true;',
    killedBy: policies,
  },
];
