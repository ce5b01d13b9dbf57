/** `_score` of one SELECT: that of RANK BY, else of the ranking rules of its type, else the likeness that SIMILAR requires. */
import { splitTypeName } from '../../projections/access-paths.ts';
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import { bindSimilarity, similarIn } from '../expressions/bind-similar.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { Expression, Select } from '../syntax/statement.ts';
import type { Environment } from './environment.ts';
import { type BoundSearch, scoreName } from './match-columns.ts';
import { bindDefaultScore, bindScore, type RankingRule } from './ranking.ts';
import type { Scope } from './scope.ts';

export interface ScoreRequest {
  readonly scope: Scope;
  readonly select: Select;
  readonly search: BoundSearch | undefined;
  /** Rules that add to the score of a MATCH, where the statement has no RANK BY. */
  readonly rules: readonly RankingRule[];
  /** Whether rules also order the rows: those of a statement without another order, and not of its later pages. */
  readonly ordersByRules: boolean;
  readonly rows: () => ExpressionContext;
  /** A context in which no column can be added to the rows. */
  readonly contextWithout: (scope: Scope) => ExpressionContext;
}

export class SelectScore {
  readonly #request: ScoreRequest;
  #isRanking = false;

  constructor(request: ScoreRequest) {
    this.#request = request;
  }

  /** Whether rows come in the order of their score. */
  get ordersRows(): boolean {
    return this.#request.select.rankBy.length > 0 || this.#ordersByRules();
  }

  /** The score by which rows are ordered; undefined where none orders them. */
  bindOrder(): Bound | undefined {
    const { select } = this.#request;
    if (select.rankBy.length > 0) return this.#rank();
    return this.#ordersByRules() ? this.#byRules() : undefined;
  }

  /** `_score` as a column of the rows. */
  column(expression: Expression): Bound | undefined {
    const { select, rules, search, scope } = this.#request;
    if (!isScore(expression, scope)) return undefined;
    if (select.rankBy.length > 0) return this.#isRanking ? undefined : this.#rank();
    return rules.length > 0 && search !== undefined ? this.#byRules() : undefined;
  }

  /** `_score` beside a SIMILAR that the condition requires. */
  similarity(expression: Expression, scope: Scope): Bound | undefined {
    const call = isScore(expression, scope) ? similarIn(this.#request.select.where) : null;
    return call ? bindSimilarity(call, (operand) => bindExpression(operand, this.#request.contextWithout(scope))) : undefined;
  }

  #ordersByRules(): boolean {
    const { rules, search, ordersByRules } = this.#request;
    return rules.length > 0 && search !== undefined && ordersByRules;
  }

  /** The score of RANK BY. `_score` can't be used within RANK BY itself. */
  #rank(): Bound {
    const { select, scope } = this.#request;
    this.#isRanking = true;
    const score = bindScore(select, this.#request.rows());
    this.#isRanking = false;
    scope.refuseMasked(score, 'RANK BY', select.rankBy[0]!.location);
    return score;
  }

  #byRules(): Bound {
    const { rules, select, rows } = this.#request;
    return bindDefaultScore(rules, select, rows());
  }
}

/** The ranking rules of the type, without those on masked columns. */
export function rankingRules({ rankBy }: Select, scope: Scope, environment: Environment): readonly RankingRule[] {
  const type = scope.tables[0]?.type ?? null;
  if (type === null || rankBy.length > 0) return [];
  const masked = environment.masksOf(type);
  return (environment.request.rankings?.(splitTypeName(type)?.type ?? type) ?? []).filter(({ field }) => !masked.has(field));
}

function isScore(expression: Expression, scope: Scope): boolean {
  return expression.kind === 'column' && expression.table === null && expression.name === scoreName && !scope.has(scoreName);
}
