/** Mistakes in what policies are compiled to: each would show a row, hide one, or say something else than Cedar does. */
import type { Mutant } from '../mutant.ts';

const cedar = 'src/governance/authorization/cedar';
const texts = ['test/governance/cedar/policies.test.ts'];
const conditions = ['test/governance/cedar/conditions.test.ts'];
const decisions = ['test/governance/cedar/decision.test.ts'];
const differential = ['test/governance/cedar/differential.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'policies: a forbid that errs is ignored',
    file: `${cedar}/conditions.ts`,
    find: '|| (state === ERRS && effect === FORBIDDEN)',
    replace: '',
    killedBy: conditions,
  },
  {
    name: 'policies: a permit that errs permits',
    file: `${cedar}/conditions.ts`,
    find: '(state === ERRS && effect === FORBIDDEN)',
    replace: 'state === ERRS',
    killedBy: conditions,
  },
  {
    name: 'policies: && looks at its right side first',
    file: `${cedar}/fold.ts`,
    find: 'return isTrue(then) && isBoolean(left) ? left : and(left, then);',
    replace:
      "if (then.op === 'value' && then.value === false) return FALSE;\n  return isTrue(then) && isBoolean(left) ? left : and(left, then);",
    killedBy: texts,
  },
  {
    name: 'policies: what is no boolean counts as one after &&',
    file: `${cedar}/fold.ts`,
    find: "return expr.op === 'value' ? FAILS : and(whole, expr);",
    replace: 'return expr;',
    killedBy: texts,
  },
  {
    name: 'policies: 64 bits overflow silently',
    file: `${cedar}/values.ts`,
    find: 'return value > LONG_MAX || value < LONG_MIN ? ERROR : value;',
    replace: 'return value;',
    killedBy: texts,
  },
  {
    name: 'policies: sums beyond 2^53 are taken for exact',
    file: `${cedar}/computed-atoms.ts`,
    find: 'nothing is sure.\n          if (!(',
    replace: 'nothing is sure.\n          if (false && !(',
    killedBy: conditions,
  },
  {
    name: 'policies: instants before 1970 round towards it',
    file: `${cedar}/cells.ts`,
    find: 'high * 4294 + Math.floor(',
    replace: 'high * 4294 + Math.trunc(',
    killedBy: conditions,
  },
  {
    name: 'policies: a bound is above the value that it names',
    file: `${cedar}/bounds.ts`,
    find: 'while (count < cuts.length && cuts[count]! <= value) count++;',
    replace: 'while (count < cuts.length && cuts[count]! < value) count++;',
    killedBy: conditions,
  },
  {
    name: 'policies: wide integers are told apart by their doubles',
    file: `${cedar}/bounds.ts`,
    find: 'while (exact > 0 && this.#cuts[exact - 1]! > value) exact--;',
    replace: '',
    killedBy: conditions,
  },
  {
    name: 'policies: what a dictionary gained later is unknown',
    file: `${cedar}/column-classes.ts`,
    find: 'known !== undefined && known.length >= dictionary.size',
    replace: 'known !== undefined',
    killedBy: conditions,
  },
  {
    name: 'policies: classes that turn up late are taken for others',
    file: `${cedar}/conditions.ts`,
    find: 'while (!this.#classify(own, rows));',
    replace: 'while (!this.#classify(own, rows) && false);',
    killedBy: conditions,
  },
  {
    name: 'policies: a verdict is kept for another combination of the same hash',
    file: `${cedar}/conditions.ts`,
    find: 'if (kept[place] !== label) {',
    replace: 'if (kept[place] === -1) {',
    killedBy: conditions,
  },
  {
    name: 'policies: a permit of every row is forgotten where codes decide',
    file: `${cedar}/conditions.ts`,
    find: 'return start | this.#verdict();',
    replace: 'return this.#verdict();',
    killedBy: conditions,
  },
  {
    name: 'policies: NULL has the code that stands in its place',
    file: `${cedar}/conditions.ts`,
    find: 'out[k] = nulls !== null && nulls[row] === 1 ? ofNull : passes[codes[row]!]!;',
    replace: 'out[k] = passes[codes[row]!]!;',
    killedBy: conditions,
  },
  {
    name: 'policies: an organisation covers those whose name begins like its own',
    file: `${cedar}/fold.ts`,
    find: "isIn(new Entity('Org', path), new Entity('Org', expr.path), orgsAbove) === true",
    replace: 'path.startsWith(expr.path)',
    killedBy: differential,
  },
  {
    name: 'policies: a pattern’s last part may overlap the one before it',
    file: `${cedar}/operators.ts`,
    find: 'return at <= text.length - last.length;',
    replace: 'return true;',
    killedBy: texts,
  },
  {
    name: 'policies: literals that lose digits are read',
    file: `${cedar}/policies.ts`,
    find: 'BigInt(token.text) > BigInt(Number.MAX_SAFE_INTEGER)',
    replace: 'false',
    killedBy: texts,
  },
  {
    name: 'policies: an obligation that nobody enforces is ignored',
    file: `${cedar}/policies.ts`,
    find: "if (name === 'id' || name === 'mask') continue;",
    replace: "if (name === 'id' || name === 'mask' || name === 'budget') continue;",
    killedBy: texts,
  },
  {
    name: 'policies: the weakest mask wins',
    file: `${cedar}/compile.ts`,
    find: 'strictness[kindOf(b)] - strictness[kindOf(a)]',
    replace: 'strictness[kindOf(a)] - strictness[kindOf(b)]',
    killedBy: decisions,
  },
  {
    name: 'policies: a masked key is read under its other names',
    file: `${cedar}/compile.ts`,
    find: 'for (const column of keys) hide(column, ofKey);',
    replace: "hide(type.primaryKey ?? 'id', ofKey);",
    killedBy: decisions,
  },
  {
    name: 'policies: what a type declares masked is shown',
    file: `${cedar}/decision.ts`,
    find: 'const forbids = [...declaredMasks(type), ',
    replace: 'const forbids = [...declaredMasks(type).slice(0, 0), ',
    killedBy: decisions,
  },
  {
    name: 'policies: what depends on the clock is decided once',
    file: `${cedar}/decision.ts`,
    find: 'known = dependsOnNow(residuals) ? residuals : verdictOf(residuals);',
    replace: 'known = verdictOf(residuals);',
    killedBy: decisions,
  },
  {
    name: 'policies: one caller’s decisions serve another purpose',
    file: `${cedar}/entities.ts`,
    find: 'return JSON.stringify([principal, roles, path, sorted, purpose,',
    replace: 'return JSON.stringify([principal, roles, path, sorted,',
    killedBy: decisions,
  },
  {
    name: 'policies: a set outvotes the forbids that always hold',
    file: 'src/governance/authorization/policy.ts',
    find: 'if (isForbidden || request.action',
    replace: 'if (request.action',
    killedBy: decisions,
  },
  {
    name: 'policies: a forbid locks the administrator out',
    file: 'src/governance/authorization/policy.ts',
    find: " || request.action === 'administer' || runsTheStore(request.caller, ruled)",
    replace: '',
    killedBy: decisions,
  },
];
