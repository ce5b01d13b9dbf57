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
  readonly #scoreRequest: ScoreRequest;
  #isBindingRank = false;

  constructor(request: ScoreRequest) {
    this.#scoreRequest = request;
  }

  /** Whether rows come in the order of their score. */
  get ordersRows(): boolean {
    return this.#scoreRequest.select.rankBy.length > 0 || this.#ordersByRules();
  }

  /** The score by which rows are ordered; undefined where none orders them. */
  bindOrder(): Bound | undefined {
    const { select } = this.#scoreRequest;
    if (select.rankBy.length > 0) return this.#bindRank();
    return this.#ordersByRules() ? this.#scoreByRules() : undefined;
  }

  /** `_score` as a column of the rows. */
  column(expression: Expression): Bound | undefined {
    const { select, rules, search, scope } = this.#scoreRequest;
    if (!isScoreColumn(expression, scope)) return undefined;
    if (select.rankBy.length > 0) return this.#isBindingRank ? undefined : this.#bindRank();
    return rules.length > 0 && search !== undefined ? this.#scoreByRules() : undefined;
  }

  /** `_score` beside a SIMILAR that the condition requires. */
  similarity(expression: Expression, scope: Scope): Bound | undefined {
    const similarCall = isScoreColumn(expression, scope) ? similarIn(this.#scoreRequest.select.where) : null;
    return similarCall
      ? bindSimilarity(similarCall, (operand) => bindExpression(operand, this.#scoreRequest.contextWithout(scope)))
      : undefined;
  }

  #ordersByRules(): boolean {
    const { rules, search, ordersByRules } = this.#scoreRequest;
    return rules.length > 0 && search !== undefined && ordersByRules;
  }

  /** The score of RANK BY. `_score` can't be used within RANK BY itself. */
  #bindRank(): Bound {
    const { select, scope } = this.#scoreRequest;
    this.#isBindingRank = true;
    const rankScore = bindScore(select, this.#scoreRequest.rows());
    this.#isBindingRank = false;
    scope.refuseMasked(rankScore, 'RANK BY', select.rankBy[0]!.location);
    return rankScore;
  }

  #scoreByRules(): Bound {
    const { rules, select, rows } = this.#scoreRequest;
    return bindDefaultScore(rules, select, rows());
  }
}

/** The ranking rules of the type, without those on masked columns. */
export function rankingRules({ rankBy }: Select, scope: Scope, environment: Environment): readonly RankingRule[] {
  const rankedType = scope.tables[0]?.type ?? null;
  if (rankedType === null || rankBy.length > 0) return [];
  const maskedFields = environment.masksOf(rankedType);
  return (environment.request.rankings?.(splitTypeName(rankedType)?.type ?? rankedType) ?? []).filter(
    ({ field }) => !maskedFields.has(field),
  );
}

function isScoreColumn(expression: Expression, scope: Scope): boolean {
  return expression.kind === 'column' && expression.table === null && expression.name === scoreName && !scope.has(scoreName);
}
