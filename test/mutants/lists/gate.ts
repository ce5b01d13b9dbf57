/** Mistakes about decisions at the gate: policies, guards, standing, rows that are written, streams that go on. */
import type { Mutant } from '../mutant.ts';

const policies = ['test/governance/gate-policies.test.ts'];
const guards = ['test/governance/guards.test.ts'];
const overHttp = ['test/doors/http/guards.test.ts'];
const writes = ['test/governance/write-checks.test.ts'];
const lease = ['test/doors/http/lease.test.ts', 'test/doors/http/answer-body.test.ts'];
const authentication = ['test/governance/authentication.test.ts'];
const invocation = 'src/governance/gated-invocation.ts';
const guardsFile = 'src/governance/authorization/guards.ts';
const rowCheck = 'src/projections/rows/row-check.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'gate: policies that are installed decide nothing',
    file: 'src/governance/authorization/judge.ts',
    find: "if (policies.digest === '') return decide(this.rules, request);",
    replace: 'if (policies.epoch >= 0) return decide(this.rules, request);',
    killedBy: policies,
  },
  {
    name: 'gate: whoever a policy permits everything administers the store',
    file: 'src/governance/authorization/policy.ts',
    find: "if (isForbidden || request.action === 'administer' || runsTheStore(request.caller, ruled)) return ruled;",
    replace: "if (isForbidden || (request.action === 'administer' && ruled.allowed)) return ruled;",
    killedBy: [...writes, ...policies],
  },
  {
    name: 'gate: entries name no policy set',
    file: invocation,
    find: 'policyDigest: this.#core.judge.policies.digest,',
    replace: "policyDigest: '',",
    killedBy: writes,
  },
  {
    name: 'gate: a policy of before is asked on',
    file: 'src/governance/authorization/policies-in-force.ts',
    find: 'if (last !== undefined && last.set === set && isSame(last.stated, stated)) return last.policies;',
    replace: 'if (last !== undefined && isSame(last.stated, stated)) return last.policies;',
    killedBy: policies,
  },
  {
    name: 'gate: what is stated anew is decided as before',
    file: 'src/governance/authorization/policies-in-force.ts',
    find: 'last.set === set && isSame(last.stated, stated)',
    replace: 'last.set === set',
    killedBy: policies,
  },
  {
    name: 'gate: a suspended tenant goes on',
    file: invocation,
    find: 'if (this.#request.whileSuspended !== true) checkStanding(this.#core.parts.projections.tenants, this.caller);',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'gate: standing is looked at once an invocation',
    file: invocation,
    find: 'if (this.#request.whileSuspended !== true) checkStanding(',
    replace: 'if (this.#admittedFor === undefined && this.#request.whileSuspended !== true) checkStanding(',
    killedBy: policies,
  },
  {
    name: 'gate: a suspended tenant takes places among the running queries',
    file: invocation,
    find: '    if (recordOnly === true) return null;\n    this.#checkStanding();\n',
    replace: '    if (recordOnly === true) return null;\n',
    killedBy: policies,
  },
  {
    name: 'gate: a unit of a suspended tenant goes on',
    file: 'src/governance/tenancy/standing.ts',
    find: 'tenants.tenant(tenantOf(path)!)',
    replace: 'tenants.tenant(path)',
    killedBy: policies,
  },
  {
    name: 'gate: a deleted tenant goes on',
    file: 'src/governance/tenancy/standing.ts',
    find: "if (state === 'active') return;",
    replace: "if (state !== 'suspended') return;",
    killedBy: policies,
  },
  {
    name: 'gate: what is shared is written into',
    file: invocation,
    find: 'if (this.caller.sharedFrom !== null) throw foreign();\n',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'gate: a visitor audits',
    file: invocation,
    find: 'if (caller.sharedFrom !== null && !readsOnly.has(this.#action)) throw foreign();',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'gate: an agreement lets visitors in before and after its time',
    file: 'src/governance/authentication/authenticator.ts',
    find: 'isInForce(agreement, now),',
    replace: "agreement.state === 'active',",
    killedBy: authentication,
  },
  {
    name: 'gate: a visitor whose agreement ended comes again',
    file: 'src/governance/authentication/authenticator.ts',
    find: 'if (caller.sharedFrom !== null && !this.#isShared(caller.path, caller.sharedFrom)) throw foreignOrganization();',
    replace: '',
    killedBy: authentication,
  },
  {
    name: 'guards: any reason opens',
    file: guardsFile,
    find: "return caller.roles.includes('break-glass') || this.#permits.permitted(this.#opening, type) ? null : 'no right';",
    replace: 'return null;',
    killedBy: guards,
  },
  {
    name: 'guards: the role needs no reason',
    file: guardsFile,
    find: "if (breakGlass === null) return 'no reason';",
    replace: "if (breakGlass === null && !caller.roles.includes('break-glass')) return 'no reason';",
    killedBy: guards,
  },
  {
    name: 'guards: any scope opens',
    file: guardsFile,
    find: "return ref !== null && typeof scopes === 'string' && scopes.split(',').some((scope) => scope.trim() === ref);",
    replace: 'return ref !== null && scopes !== undefined;',
    killedBy: guards,
  },
  {
    name: 'guards: a permit that names the reason opens the rows of all others',
    file: guardsFile,
    find: " && (naming.length === permits.length || naming.some(({ left }) => left.op === 'value'))",
    replace: '',
    killedBy: overHttp,
  },
  {
    name: 'guards: closed types are written into',
    file: invocation,
    find: 'this.#checkGuards(command);',
    replace: '',
    killedBy: guards,
  },
  {
    name: 'guards: what was removed of a closed type is told',
    file: 'src/governance/governed-snapshot.ts',
    find: '      guards.check(type, []);\n',
    replace: '',
    killedBy: guards,
  },
  {
    name: 'guards: what was made for who may serves who may not',
    file: guardsFile,
    find: "if (breakGlass === null && accessScopeRef === null) return '';",
    replace: "if (caller.roles.length >= 0) return '';",
    killedBy: guards,
  },
  {
    name: 'guards: a reason is not recorded',
    file: 'src/governance/access-record.ts',
    find: '    ...statedIn(happened),\n',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'writes: the version that is superseded is not looked at',
    file: rowCheck,
    find: 'const ofStored = known === undefined ? null : check.of(known);',
    replace: 'const ofStored = null as ReturnType<typeof check.of>;',
    killedBy: writes,
  },
  {
    name: 'writes: rows are judged by the type as it was',
    file: rowCheck,
    find: 'const test = check.of(batch.definition);',
    replace: 'const test = check.of(known ?? batch.definition);',
    killedBy: writes,
  },
  {
    name: 'writes: a row is judged by another organisation’s version of its key',
    file: rowCheck,
    find: 'keys, paths: [code] }',
    replace: 'keys }',
    killedBy: writes,
  },
  {
    name: 'writes: a key that stands is told from one that does not',
    file: 'src/projections/rows/commands.ts',
    find: "if (test === null) rejections.add(index, 'REL_NOT_FOUND', 'no such row');",
    replace: "if (test === null || !stands) rejections.add(index, 'REL_NOT_FOUND', 'no such row');",
    killedBy: writes,
  },
  {
    name: 'writes: removing looks at what stands only',
    file: 'src/projections/rows/commands.ts',
    find: "checkedKeys(command, known, 'all', rows, context, next)",
    replace: "checkedKeys(command, known, 'open', rows, context, next)",
    killedBy: writes,
  },
  {
    name: 'proofs: rows are proven that are not shown',
    file: invocation,
    find: 'return everything || this.#mayProve(paths, type, systemFrom);',
    replace: 'return true;',
    killedBy: policies,
  },
  {
    name: 'proofs: a masked cell is proven',
    file: invocation,
    find: 'governed.masked(type).size === 0 && ',
    replace: '',
    killedBy: policies,
  },
  {
    name: 'streams: nobody looks at the tenant of who streams',
    file: 'src/doors/http/lease.ts',
    find: '  gate.checkStanding(caller);\n',
    replace: '',
    killedBy: lease,
  },
  {
    name: 'streams: a sender that sends nothing stays',
    file: 'src/doors/http/lease.ts',
    find: '    cutOff(refusal);\n',
    replace: '',
    killedBy: lease,
  },
  {
    name: 'explained: policies of now explain decisions of then',
    file: invocation,
    find: 'const set = at === undefined ? judge.policies.current : judge.policies.at(at);',
    replace: 'const set = judge.policies.current;',
    killedBy: policies,
  },
];
