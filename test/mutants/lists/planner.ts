/** Mistakes in binding, passes, kernels, operators and the driver. */
import type { Mutant } from '../mutant.ts';

const compiler = 'src/planner/expressions/kernel-code.ts';
const context = 'src/planner/expressions/kernel-context.ts';
const interner = 'src/planner/expressions/text-interner.ts';
const evaluate = 'src/planner/expressions/evaluate.ts';
const groups = 'src/planner/operators/group-table.ts';
const pairs = 'src/planner/operators/pair-numbers.ts';
const values = 'src/planner/operators/value-numbers.ts';
const sums = 'src/planner/operators/accumulators.ts';
const order = 'src/planner/operators/row-order.ts';
const sink = 'src/planner/operators/column-sink.ts';
const limit = 'src/planner/operators/limit.ts';
const scan = 'src/planner/operators/scan.ts';
const executor = 'src/planner/executor.ts';
const paths = 'src/planner/passes/choose-access-paths.ts';
const pushDown = 'src/planner/passes/push-down-filters.ts';
const sketches = 'src/planner/sketches.ts';
const simplify = 'src/planner/passes/simplify-expressions.ts';

const byKernels = ['test/planner/executor/kernels.test.ts'];
const byAnswers = ['test/planner/executor/answers.test.ts'];
const byLimits = ['test/planner/executor/limits.test.ts'];
const byPasses = ['test/planner/passes/passes.test.ts'];
const bySketches = ['test/planner/sketches.test.ts'];
const byPlans = ['test/planner/plans.test.ts'];
const bySharedPlans = ['test/planner/shared-plans.test.ts'];
const byFront = ['test/planner/front.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'planner: NOT of a comparison is true for NULL',
    file: compiler,
    find: 'isFalse: both(ok, test(opposite[op])) };',
    replace: 'isFalse: test(opposite[op]) };',
    killedBy: byKernels,
  },
  {
    name: 'planner: integer results beyond 2^53 lose their last digits',
    file: compiler,
    find: 'if (${result} > 9007199254740991 || ${result} < -9007199254740991) throw help.widen;',
    replace: '',
    killedBy: byKernels,
  },
  {
    name: 'planner: integer overflow wraps around',
    file: compiler,
    find: 'throw help.integerOverflow();',
    replace: '${result};',
    killedBy: byKernels,
  },
  {
    name: 'planner: low halves of 64-bit integers compare as signed',
    file: 'src/planner/expressions/kernel-text.ts',
    find: '${left.low} >>> 0 ${op} ${right.low} >>> 0',
    replace: '${left.low} ${op} ${right.low}',
    killedBy: byAnswers,
  },
  {
    name: 'planner: a predicate on dictionary codes takes NULL for the text under it',
    file: compiler,
    find: 'this.temporary(ok === null ? verdict :',
    replace: 'this.temporary(ok !== undefined ? verdict :',
    killedBy: byKernels,
  },
  {
    name: 'planner: NOT IN with a NULL in the list is true',
    file: compiler,
    find: '(!${found} & !${set}.hasNull)',
    replace: '(!${found})',
    killedBy: byKernels,
  },
  {
    name: 'planner: dividing by zero yields infinity',
    file: compiler,
    find: 'ok = both(ok, `(${divisor} !== 0)`);',
    replace: '',
    killedBy: byKernels,
  },
  {
    name: 'planner: a block that needs bigints is skipped',
    file: 'src/planner/operators/predicate.ts',
    find: 'return this.#run(batch);\n    }',
    replace: 'return 0;\n    }',
    killedBy: byKernels,
  },
  {
    name: 'planner: verdicts on one dictionary serve another',
    file: context,
    find: 'let table = tables.get(dictionary);',
    replace: 'let table = [...tables.values()][0];',
    killedBy: byKernels,
  },
  {
    name: 'planner: texts of one hash are one text',
    file: interner,
    find: 'if (slots[slot + 1] === hash && slots[slot + 3] === size) {',
    replace: 'if ((slots[slot + 1]! & 15) === (hash & 15)) return slot; else if (size < 0) {',
    killedBy: byAnswers,
  },
  {
    name: 'planner: OR with an unknown side is false',
    file: evaluate,
    find: 'return unknown ? null : !deciding;',
    replace: 'return !deciding;',
    killedBy: byKernels,
  },
  {
    name: 'planner: values of two keys are told apart by the first alone',
    file: pairs,
    find: 'const place = (left[j]! << bits) | right[j]!;\n      if (places',
    replace: 'const place = left[j]! << bits;\n      if (places',
    killedBy: byAnswers,
  },
  {
    name: 'planner: groups by two keys mix their values up',
    file: pairs,
    find: 'const place = (left[j]! << bits) | right[j]!;\n      const known',
    replace: 'const place = left[j]! << bits;\n      const known',
    killedBy: byAnswers,
  },
  {
    name: 'planner: one integer in two layouts makes two groups',
    file: values,
    find: 'return this.#doubles ? this.#ofDouble(value, add) : this.#ofWords(Math.floor(value / word), value | 0, add);',
    replace: 'return this.#ofDouble(value, add);',
    killedBy: byAnswers,
  },
  {
    name: 'planner: the NULL group comes last',
    file: groups,
    find: 'if (value - 1 === this.#nullAfter) order[at++] = 0;',
    replace: 'if (false) order[at++] = 0;',
    killedBy: byAnswers,
  },
  {
    name: 'planner: the low word of a 64-bit summand is signed',
    file: sums,
    find: "'A += values[2 * i] >>> 0; C += values[2 * i + 1];'",
    replace: "'A += values[2 * i]; C += values[2 * i + 1];'",
    killedBy: byAnswers,
  },
  {
    name: 'planner: a sum beyond 64 bits wraps around',
    file: sums,
    find: 'if (sum > I64_MAX || sum < I64_MIN) throw integerOverflow();',
    replace: '',
    killedBy: byAnswers,
  },
  {
    name: 'planner: NULL sorts first',
    file: order,
    find: 'key.nullsFirst ? `n${k}[b] - n${k}[a]`',
    replace: 'key.nullsFirst !== undefined ? `n${k}[b] - n${k}[a]`',
    killedBy: byAnswers,
  },
  {
    name: 'planner: merging prefers the later of equal rows',
    file: order,
    find: 'compare(order[left]!, order[right]!) <= 0',
    replace: 'compare(order[left]!, order[right]!) < 0',
    killedBy: byAnswers,
  },
  {
    name: 'planner: rows equal to the last one kept are ruled out',
    file: order,
    find: 'stays = descending ? value >= (worst as number) : value <= (worst as number);',
    replace: 'stays = descending ? value > (worst as number) : value < (worst as number);',
    killedBy: byAnswers,
  },
  {
    name: 'planner: codes of another dictionary are kept as they are',
    file: sink,
    find: 'this.#dictionary === null || this.#dictionary === vector.dictionary',
    replace: 'true',
    killedBy: byAnswers,
  },
  {
    name: 'planner: LIMIT stops counting with its page',
    file: limit,
    find: 'return this.#counting && counters.hits < this.#hitsMax',
    replace: 'return counters.hits < 0',
    killedBy: byAnswers,
  },
  {
    name: 'planner: a pinned page sees later versions',
    file: scan,
    find: 'const count = this.#writtenBefore(block, this.#execution.pinned);',
    replace: 'const count = block.count;',
    killedBy: byAnswers,
  },
  {
    name: 'planner: a pinned page sees later closings',
    file: scan,
    find: 'values[i] = value > pinned ? FOREVER : value;',
    replace: 'values[i] = value;',
    killedBy: byAnswers,
  },
  {
    name: 'planner: the scanned-row cap is off',
    file: scan,
    find: 'if (counters.scanned > scannedRowsMax) {',
    replace: 'if (counters.scanned < 0) {',
    killedBy: byLimits,
  },
  {
    name: 'planner: a query never gives way',
    file: executor,
    find: 'await this.#options.scheduler.yield();',
    replace: '',
    killedBy: byLimits,
  },
  {
    name: 'planner: nobody notices that the caller has gone',
    file: executor,
    find: 'await this.#options.scheduler.yield();\n    checkSignal(this.#request.signal);',
    replace: 'await this.#options.scheduler.yield();',
    killedBy: byLimits,
  },
  {
    name: 'planner: the store is not let go of',
    file: executor,
    find: 'if (turn === null) root.close();',
    replace: '',
    killedBy: byLimits,
  },
  {
    name: 'planner: the result cap counts batches',
    file: executor,
    find: 'this.#rowCount += batch.count;',
    replace: 'this.#rowCount += 1;',
    killedBy: byLimits,
  },
  {
    name: 'planner: a plan outlives the types that it was made for',
    file: 'src/planner/plan-names.ts',
    find: 'const key = `\\0t${this.#definitionOf(definition)}`;',
    replace: 'const key = `\\0t`;',
    killedBy: byAnswers,
  },
  {
    name: 'planner: a key under OR becomes a lookup',
    file: paths,
    find: 'for (const conjunct of conjunctsOf(filter.predicate)) {\n    if ([',
    replace:
      "for (const conjunct of filter.predicate.kind === 'or' ? filter.predicate.operands : conjunctsOf(filter.predicate)) {\n    if ([",
    killedBy: byPasses,
  },
  {
    name: 'planner: a zone of a mirrored comparison looks the wrong way',
    file: paths,
    find: "'<': '>', '<=': '>='",
    replace: "'<': '<', '<=': '<='",
    killedBy: byPlans,
  },
  {
    name: 'planner: HAVING on a result is tested on rows',
    file: pushDown,
    find: 'within(each, 0, node.groups)',
    replace: 'within(each, 0, node.groups + 1)',
    killedBy: [...byPlans, ...byPasses],
  },
  {
    name: 'planner: constants of one type share a parameter',
    file: simplify,
    find: 'let index = known[bound.as].get(bound.slot);',
    replace: 'let index = [...known[bound.as].values()][0];',
    killedBy: byAnswers,
  },
  {
    name: 'the youngest that waits goes on first',
    file: 'src/planner/turn-queue.ts',
    find: 'const resolve = lane.waiting[lane.first++]!;',
    replace: 'const resolve = lane.waiting.pop()!;',
    killedBy: ['test/planner/turn-queue.test.ts'],
  },
  {
    name: 'a kind of work that waits goes on until nobody of it does',
    file: 'src/planner/turn-queue.ts',
    find: 'if (lane.waiting.length > 0) this.#order.push(lane);',
    replace: 'if (lane.waiting.length > 0) this.#order.unshift(lane);',
    killedBy: ['test/planner/turn-queue.test.ts'],
  },
  {
    name: 'those who have gone on pile up until some are lost',
    file: 'src/planner/turn-queue.ts',
    find: 'lane.waiting = lane.waiting.slice(lane.first);',
    replace: 'lane.waiting = [];',
    killedBy: ['test/planner/turn-queue.test.ts'],
  },
  {
    name: 'planner: ranges of a key that storage knows no extremes of',
    file: paths,
    find: "const isKey = zone.column === scan.primaryKey && zone.type === 'string'",
    replace: "const isKey = zone.column === scan.primaryKey && zone.type === 'json'",
    killedBy: byPlans,
  },
  {
    name: 'planner: a sketch that ends in the middle takes cells again',
    file: sketches,
    find: 'stored.scan(before ? { ...every, after: before.instant } : every)',
    replace: 'stored.scan(every)',
    killedBy: bySketches,
  },
  {
    name: 'planner: what was removed for good stays in a sketch',
    file: sketches,
    find: '(isLater || removals.removedAfter(type, before.instant).length > 0)',
    replace: 'isLater',
    killedBy: bySketches,
  },
  {
    name: 'planner: one sketch for all organisations',
    file: sketches,
    find: 'const key = `${grantKey}\\0${catalog',
    replace: 'const key = `${catalog',
    killedBy: bySketches,
  },
  {
    name: 'planner: a sketch that knows later rows answers for an earlier basis',
    file: sketches,
    find: 'if (before?.instant === instant) return before.sketch;',
    replace: 'if (before && before.instant >= instant) return before.sketch;',
    killedBy: bySketches,
  },
  {
    name: 'planner: a sketch counts on from the first cell where it goes on',
    file: 'src/planner/column-sketch.ts',
    find: 'this.#values = before.#values;',
    replace: '',
    killedBy: ['test/planner/column-sketch.test.ts'],
  },
  {
    name: 'planner: a sample goes on as it began after it was halved',
    file: 'src/planner/column-sketch.ts',
    find: 'this.#mask = before.#mask;',
    replace: '',
    killedBy: ['test/planner/column-sketch.test.ts'],
  },
  {
    name: 'planner: what a filter lets through is of all conditions but the sketched ones',
    file: 'src/planner/passes/estimate-rows.ts',
    find: 'Math.max(guessedLeast, guessed), isSketched',
    replace: '1, isSketched',
    killedBy: bySketches,
  },
  {
    name: 'planner: a left row without a partner is not read',
    file: 'src/planner/told-keys.ts',
    find: "return type === 'semi' || type === 'right';",
    replace: "return type !== 'full' && type !== 'mark';",
    killedBy: ['test/planner/told-keys.test.ts'],
  },
  {
    name: 'planner: a right row without a partner is not read',
    file: 'src/planner/told-keys.ts',
    find: "return type !== 'right' && type !== 'full';",
    replace: 'return true;',
    killedBy: ['test/planner/told-keys.test.ts'],
  },
  {
    name: 'planner: the first of the values told to a scan is none',
    file: 'src/planner/operators/key-filter.ts',
    find: 'if (value < this.#least || value > this.#most) return false;',
    replace: 'if (value <= this.#least || value > this.#most) return false;',
    killedBy: ['test/planner/executor/key-filter.test.ts'],
  },
  {
    name: 'planner: a double near a hundredth is taken for it',
    file: values,
    find: 'near >= 0 && near < hundredths.length && (near | 0) / 100 === value ?',
    replace: 'near >= 0 && near < hundredths.length ?',
    killedBy: ['test/planner/executor/hundredths.test.ts'],
  },
  {
    name: 'planner: amounts that came before the table reached them are entered one too low',
    file: values,
    find: 'if (at >= 0 && at < length && at / 100 === met) this.#hundredths[at] = index + 1;',
    replace: 'if (at >= 0 && at < length && at / 100 === met) this.#hundredths[at] = index;',
    killedBy: ['test/planner/executor/hundredths.test.ts'],
  },
  {
    name: 'planner: what an only group had met is forgotten when another one comes',
    file: 'src/planner/operators/of-distinct.ts',
    find: 'for (; this.#ofOne > 0; this.#ofOne--) this.#pairs.numberOf(0, this.#ofOne);',
    replace: '',
    killedBy: ['test/planner/executor/count-distinct.test.ts'],
  },
  {
    name: 'planner: joins are arranged by what others wrote',
    file: 'src/planner/plans.ts',
    find: 'if (rows === undefined) estimates.set(scan.type, (rows = rowsOf(snapshot, scan.type)));',
    replace: 'rows = scan.type.length * snapshot.position;',
    killedBy: ['test/planner/governed-figures.test.ts'],
  },
  {
    name: 'plans: a type is told by how often its tenant has changed one',
    file: 'src/planner/plan-names.ts',
    find: 'JSON.stringify({ ...definition, ontologyVersion: 0 })',
    replace: 'JSON.stringify(definition.ontologyVersion)',
    killedBy: bySharedPlans,
  },
  {
    name: 'plans: joins stay as the first caller had them',
    file: 'src/planner/plans.ts',
    find: 'const known = key === null ? undefined : shared.arrangements.get(key);',
    replace: 'const known = [...shared.arrangements.values()][0];',
    killedBy: bySharedPlans,
  },
  {
    name: 'plans: views of two texts share a plan',
    file: 'src/planner/plan-names.ts',
    find: 'return `\\0v${this.#text(view.sql)}(${inside})`;',
    replace: 'return `\\0v(${inside})`;',
    killedBy: bySharedPlans,
  },
  {
    name: 'session: each question takes a snapshot of its own',
    file: 'src/planner/session.ts',
    find: 'return (this.#snapshot ??= this.#invocation.snapshot());',
    replace: 'return (this.#snapshot = this.#invocation.snapshot());',
    killedBy: byFront,
  },
  {
    name: 'session: questions are of any purpose',
    file: 'src/planner/session.ts',
    find: 'if (purpose !== undefined && this.#snapshot !== null && number > 0 && purpose !== this.#snapshot.purpose) {',
    replace: 'if (purpose === "") {',
    killedBy: byFront,
  },
  {
    name: 'question: languages share plans by template',
    file: 'src/planner/question.ts',
    find: 'this.key = `\\0${parsed.language}\\0${dialect}\\0${parsed.template}\\0${types}`;',
    replace: 'this.key = `\\0${dialect}\\0${parsed.template}\\0${types}`;',
    killedBy: byFront,
  },
  {
    name: 'planner: EXPLAIN ANALYZE tells what a scan looked at beneath its condition',
    file: 'src/planner/analysis.ts',
    find: "return node.kind !== 'scan' || node.zones.length === 0;",
    replace: 'return true;',
    killedBy: ['test/planner/analyze.test.ts'],
  },
  {
    name: 'planner: EXPLAIN ANALYZE counts rows below a full LIMIT to the end of their block',
    file: 'src/planner/analysis.ts',
    find: "return this.#rows(node) < most ? 'all' : most;",
    replace: "return 'all';",
    killedBy: ['test/planner/analyze.test.ts'],
  },
];
