/** Mistakes in what policies are compiled to: each would show a row, hide one, or say something else than Cedar does. */
import type { Mutant } from '../mutant.ts';

const cedar = 'src/governance/authorization/cedar';
const texts = ['test/governance/cedar/policies.test.ts'];
const conditions = ['test/governance/cedar/conditions.test.ts'];
const decisions = ['test/governance/cedar/decision.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'policies: a forbid that errs is ignored',
    file: `${cedar}/conditions.ts`,
    find: '|| (ruleState === ERRS && effect === FORBIDDEN)',
    replace: '',
    killedBy: conditions,
  },
  {
    name: 'policies: 64 bits overflow silently',
    file: `${cedar}/values.ts`,
    find: 'return value > LONG_MAX || value < LONG_MIN ? ERROR : value;',
    replace: 'return value;',
    killedBy: texts,
  },
  {
    name: 'policies: the weakest mask wins',
    file: `${cedar}/compile.ts`,
    find: 'strictness[maskKindOf(b)] - strictness[maskKindOf(a)]',
    replace: 'strictness[maskKindOf(a)] - strictness[maskKindOf(b)]',
    killedBy: decisions,
  },
  {
    name: 'policies: a set outvotes the forbids that always hold',
    file: 'src/governance/authorization/access-rules.ts',
    find: 'if (isForbidden || request.action',
    replace: 'if (request.action',
    killedBy: decisions,
  },
];
