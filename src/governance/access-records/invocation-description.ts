/** The description of an invocation: its request, and facts found since. It is judged and recorded by the same words. */
import type { Judged } from '../authorization/judge.ts';
import { actionOf, answers, partsOf, touchesRows, typeNamed, typesBeside } from '../authorization/action-names.ts';
import type { Caller } from '../caller.ts';
import type { Command, Outcome } from '../../projections/command.ts';
import type { Action, InvocationDetails, InvocationRequest } from '../gate-contract.ts';

/** The act in an access record, beside who did it and how it ended. */
export interface RecordedAct {
  readonly action: Action;
  readonly objectType: string | null;
  readonly template: string | null;
  readonly literals: readonly string[] | undefined;
  readonly rowCount: number;
}

/** Their rows are those that they wrote, whatever they read for it. */
const rowActions: ReadonlySet<Action> = new Set(['ingest', 'delete', 'remove']);

export class InvocationDescription {
  readonly caller: Caller;
  readonly request: InvocationRequest;
  /** When it began. */
  readonly time: bigint;
  /** The instant of what was read last; 0 where nothing was. */
  basis = 0n;
  readonly #facts: { -readonly [K in keyof InvocationDetails]: InvocationDetails[K] } = {};
  /** By type, rows that were written so far; 0 for what was submitted and is not written, or not yet. */
  readonly #written = new Map<string | null, number>();
  /** The kind of the last submitted command; null: none that changes anything. */
  #submitted: Command['kind'] | null = null;
  /** Until something else is described. */
  #judgedAs: Judged | null = null;

  constructor(caller: Caller, request: InvocationRequest, time: bigint) {
    this.caller = caller;
    this.request = request;
    this.time = time;
  }

  describe(facts: InvocationDetails): void {
    Object.assign(this.#facts, facts);
    this.#judgedAs = null;
  }

  /** Notes a command before anything can refuse it. */
  submits(command: Command): void {
    const parts = partsOf(command).filter((part) => typeNamed(part) !== this.#callType);
    for (const part of parts) this.#wrote(typeNamed(part), 0);
    for (const type of typesBeside(command)) this.#wrote(type, 0);
    // An answer stays an answer, even where it is stored.
    const changing = parts.filter(({ kind }) => !answers.has(actionOf[kind]));
    const [first] = changing;
    if (first !== undefined) this.#submitted = (changing.find(({ kind }) => kind === 'put-rows') ?? first).kind;
  }

  /** Notes what came of it. */
  wrote(command: Command, { accepted, steps }: Pick<Outcome, 'accepted' | 'steps'>): void {
    for (const [i, part] of partsOf(command).entries())
      this.#wrote(typeNamed(part), steps === undefined ? accepted : (steps[i]?.accepted ?? 0));
  }

  #wrote(type: string | null, rows: number): void {
    this.#written.set(type, (this.#written.get(type) ?? 0) + rows);
  }

  get #callType(): string | undefined {
    return this.#facts.call?.objectType;
  }

  /** The recorded act: the act that was judged, not the way in which it was requested. */
  get recordedAct(): RecordedAct {
    const { facts, request } = this;
    const act = facts.act ?? request.act;
    const submitted = this.#submitted;
    const action = submitted === null ? (act?.action ?? this.action) : actionOf[submitted];
    const { rowCount = this.#rowsWritten() } = facts;
    return {
      action,
      objectType: this.#types(),
      template: act?.template ?? facts.template ?? request.template ?? (submitted === null ? null : `${submitted} ?`),
      literals: act?.template === undefined ? facts.literals : act.literals,
      rowCount: submitted !== null && rowActions.has(action) ? this.#rowsWritten() : rowCount,
    };
  }

  /** Types that were read, then those that were written. */
  #types(): string | null {
    const { objectType = null } = this.#facts;
    if (this.#written.size === 0) return objectType;
    const types = new Set(objectType?.split(','));
    for (const type of this.#written.keys()) if (type !== null && type !== this.#callType) types.add(type);
    return types.size === 0 ? null : [...types].join(',');
  }

  #rowsWritten(): number {
    let sum = 0;
    for (const [type, rows] of this.#written) if (type !== this.#callType) sum += rows;
    return sum;
  }

  /** The call that it served, beside it; null: none. */
  get recordedCall(): RecordedAct | null {
    const { call } = this.#facts;
    return call === undefined ? null : { action: 'ingest', ...call, rowCount: this.#written.get(call.objectType) ?? 0 };
  }

  get facts(): InvocationDetails {
    return this.#facts;
  }

  get action(): Action {
    return this.#facts.action ?? this.request.action;
  }

  get purpose(): string | null {
    return (this.#facts.purpose ?? this.request.purpose) || null;
  }

  /** A credential limited to purposes says for which of them it touches rows; its own upkeep needs none. */
  get purposeRequired(): boolean {
    const { purposeRequired } = this.request;
    return purposeRequired === true || (this.caller.purposes.length > 0 && touchesRows.has(this.action));
  }

  /** The request that is judged: caller, action and statements. */
  get judged(): Judged {
    if (this.#judgedAs !== null) return this.#judgedAs;
    const { breakGlass = this.request.breakGlass, accessScopeRef = this.request.accessScopeRef } = this.#facts;
    this.#judgedAs = {
      caller: this.caller,
      action: this.action,
      purpose: this.purpose,
      breakGlass: breakGlass || null,
      accessScopeRef: accessScopeRef || null,
    };
    return this.#judgedAs;
  }
}
