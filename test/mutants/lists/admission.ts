/** Mistakes about who may run, who waits, who is told to come again, and what of it is recorded. */
import type { Mutant } from '../mutant.ts';

const queues = ['test/governance/admission-queues.test.ts'];
const quotas = ['test/governance/admission.test.ts'];
const exported = ['test/doors/http/audit-export.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'admission: places are not given back',
    file: 'src/governance/gated-invocation.ts',
    find: 'if (this.#placed) places.leave();',
    replace: '',
    killedBy: queues,
  },
  {
    name: 'admission: a place that comes free is anybody’s while others wait',
    file: 'src/governance/admission/query-places.ts',
    find: 'if (next === undefined) this.#running--;\n    else next.admit();',
    replace: 'this.#running--;\n    if (next !== undefined) next.admit();',
    killedBy: queues,
  },
  {
    name: 'admission: whoever came last goes next',
    file: 'src/governance/admission/query-places.ts',
    find: 'return line!.shift();',
    replace: 'return line!.pop();',
    killedBy: queues,
  },
  {
    name: 'admission: low priority starves',
    file: 'src/governance/admission/query-places.ts',
    find: 'const claim = turn === 15 ? 2 : turn % 5 === 4 ? 1 : 0;',
    replace: 'const claim = turn % 5 === 4 ? 1 : 0;',
    killedBy: queues,
  },
  {
    name: 'admission: a full line spills upwards too',
    file: 'src/governance/admission/query-places.ts',
    find: 'this.#lines.slice(priorities.indexOf(priority)).find(',
    replace: 'this.#lines.find(',
    killedBy: queues,
  },
  {
    name: 'admission: whoever went away still waits',
    file: 'src/governance/admission/query-places.ts',
    find: "gone?.addEventListener('abort', onGone, { once: true });",
    replace: '',
    killedBy: queues,
  },
  {
    name: 'admission: a drain leaves the waiting where they are',
    file: 'src/governance/gate.ts',
    find: 'this.#core.places.close();',
    replace: '',
    killedBy: queues,
  },
  {
    name: 'admission: a token may put itself ahead',
    file: 'src/governance/admission/query-places.ts',
    find: 'return priorities[Math.max(ofAction, ofToken)]!;',
    replace: 'return priorities[ofToken < 0 ? ofAction : ofToken]!;',
    killedBy: queues,
  },
  {
    name: 'admission: what waits is not counted among its tenant’s queries',
    file: 'src/governance/gated-invocation.ts',
    find: 'if (!continues) this.#takeSlot();',
    replace: '',
    killedBy: queues,
  },
  {
    name: 'admission: a small batch passes a large one that waits',
    file: 'src/governance/admission/ingest-backlog.ts',
    find: 'if (this.#waiting.length > 0 || !this.#fits(bytes)) return false;',
    replace: 'if (!this.#fits(bytes)) return false;',
    killedBy: queues,
  },
  {
    name: 'admission: room for rows is never given back',
    file: 'src/governance/gated-invocation.ts',
    find: 'if (held > 0) backlog.leave(held);',
    replace: '',
    killedBy: queues,
  },
  {
    name: 'admission: everybody waits for the disk, whoever can and whoever can’t',
    file: 'src/governance/gated-invocation.ts',
    find: 'if (options.waits !== true) throw backlogFull();',
    replace: '',
    killedBy: queues,
  },
  {
    name: 'admission: principals of one name share their units across tenants',
    file: 'src/governance/admission/quota.ts',
    find: "(tenant === '' ? principal : `${tenant}\\u0000${principal}`)",
    replace: '(tenant === undefined ? tenant : principal)',
    killedBy: quotas,
  },
  {
    name: 'admission: a tenant’s own quota is not looked at',
    file: 'src/governance/admission/quota.ts',
    find: 'const unitsMax = agreed?.queryUnits ?? this.#limits.unitsMax;',
    replace: 'const unitsMax = this.#limits.unitsMax;',
    killedBy: quotas,
  },
  {
    name: 'admission: a quota of nothing is no quota',
    file: 'src/governance/admission/quota.ts',
    find: 'const unitsMax = agreed?.queryUnits ?? this.#limits.unitsMax;',
    replace: 'const unitsMax = agreed?.queryUnits || this.#limits.unitsMax;',
    killedBy: quotas,
  },
  {
    name: 'admission: an export of the audit goes on after its token was revoked',
    file: 'src/doors/http/routes/audit-export.ts',
    find: '  check();\n',
    replace: '',
    killedBy: exported,
  },
  {
    name: 'admission: an export of the audit follows the log as it grows',
    file: 'src/projections/audit/reader.ts',
    find: 'this.#matching(filter, fromTheStart, end)',
    replace: 'this.#matching(filter, fromTheStart)',
    killedBy: exported,
  },
  {
    name: 'admission: whoever is over its storage is never measured again',
    file: 'src/governance/admission/tenant-storage.ts',
    find: '(known.bytes < max || nowMs - known.measuredAtMs < measureEveryMs)',
    replace: 'true',
    killedBy: quotas,
  },
  {
    name: 'admission: what a tenant writes is not counted until it is measured',
    file: 'src/governance/admission/tenant-storage.ts',
    find: 'known.bytes += bytes;',
    replace: '',
    killedBy: quotas,
  },
  {
    name: 'admission: records say a unit was paid for what cost none',
    file: 'src/governance/gated-invocation.ts',
    find: 'costUnits = this.#charged }',
    replace: 'costUnits = 1 }',
    killedBy: ['test/doors/http/limits-conformance.test.ts'],
  },
];
