/** Mistakes that would tell somebody of what others hold: the leak matrix notices each of them. */
import type { Mutant } from '../mutant.ts';

const governance = 'src/governance';
const open = ['test/leaks/open.test.ts'];
const governed = ['test/leaks/governed.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'leaks: a path covers those that start alike',
    file: `${governance}/caller.ts`,
    find: ' && path.charCodeAt(coveringPath.length) === 0x2f',
    replace: '',
    killedBy: open,
  },
  {
    name: 'leaks: a tenant sees whoever has a path',
    file: 'src/governance/reading/path-scopes.ts',
    find: 'if (!sees(callerPath, pathCodes.path(code))) continue;',
    replace: 'if ((callerPath === null) !== (pathCodes.path(code) === null)) continue;',
    killedBy: open,
  },
  {
    name: 'leaks: an agreement over current rows shows their past',
    file: 'src/governance/reading/lane-blocks.ts',
    find: "if (laneHistory !== 'all') laneTests.push(this.#rowsOfHistory(laneHistory));",
    replace: '',
    killedBy: governed,
  },
  {
    name: 'leaks: masked cells are read as they are',
    file: 'src/governance/reading/lane-blocks.ts',
    find: "if (!column.shown && onlyLane >= 0 && onlyMask !== null && onlyMask!.when === null) return { kind: 'null' };",
    replace: 'if (!column.shown && onlyLane >= 0 && onlyMask !== null && onlyMask!.when === null) return vector;',
    killedBy: open,
  },
  {
    name: 'leaks: columns that an agreement leaves out are shown',
    file: `${governance}/authorization/grants.ts`,
    find: 'masks: sharedMasks(agreement, masks, type),',
    replace: 'masks,',
    killedBy: governed,
  },
  {
    name: 'leaks: a suspended tenant is answered',
    file: 'src/governance/tenancy/tenant-status.ts',
    find: "if (tenantState === 'active') return;",
    replace: "if (tenantState !== 'deleted') return;",
    killedBy: governed,
  },
  {
    name: 'leaks: exhibits are everybody’s',
    file: 'src/governance/desks/exhibit-desk.ts',
    find: 'sees(caller.path, exhibit.path) &&',
    replace: 'sees(exhibit.path, exhibit.path) &&',
    killedBy: open,
  },
  {
    name: 'leaks: entries of everybody are proven to everybody',
    file: 'src/governance/desks/invocation-desks.ts',
    find: '(time >= provableFrom && sees(path, entryPath))',
    replace: '(time >= provableFrom && sees(path, path) && entryPath !== path)',
    killedBy: open,
  },
  {
    name: 'leaks: an Idempotency-Key is one for principals of a name',
    file: 'src/doors/http/routes/ingest.ts',
    find: 'canonicalJson([callerPrincipal, callerPath, idempotencyHeader])',
    replace: 'canonicalJson([callerPrincipal, callerPath === null, idempotencyHeader])',
    killedBy: open,
  },
];
