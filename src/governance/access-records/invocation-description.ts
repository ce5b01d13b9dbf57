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
  readonly #invocationDetails: { -readonly [K in keyof InvocationDetails]: InvocationDetails[K] } = {};
  /** By type, rows that were written so far; 0 for what was submitted and is not written, or not yet. */
  readonly #writtenRowsByType = new Map<string | null, number>();
  /** The kind of the last submitted command; null: none that changes anything. */
  #submittedKind: Command['kind'] | null = null;
  /** Until something else is described. */
  #judgedAs: Judged | null = null;

  constructor(caller: Caller, request: InvocationRequest, time: bigint) {
    this.caller = caller;
    this.request = request;
    this.time = time;
  }

  describe(facts: InvocationDetails): void {
    Object.assign(this.#invocationDetails, facts);
    this.#judgedAs = null;
  }

  /** Notes a command before anything can refuse it. */
  submits(command: Command): void {
    const commandParts = partsOf(command).filter((part) => typeNamed(part) !== this.#recordedCallType);
    for (const part of commandParts) this.#countWrittenRows(typeNamed(part), 0);
    for (const type of typesBeside(command)) this.#countWrittenRows(type, 0);
    // An answer stays an answer, even where it is stored.
    const changingCommands = commandParts.filter(({ kind }) => !answers.has(actionOf[kind]));
    const [firstChange] = changingCommands;
    if (firstChange !== undefined)
      this.#submittedKind = (changingCommands.find(({ kind }) => kind === 'put-rows') ?? firstChange).kind;
  }

  /** Notes what came of it. */
  wrote(command: Command, { accepted, steps }: Pick<Outcome, 'accepted' | 'steps'>): void {
    for (const [i, part] of partsOf(command).entries())
      this.#countWrittenRows(typeNamed(part), steps === undefined ? accepted : (steps[i]?.accepted ?? 0));
  }

  #countWrittenRows(type: string | null, rows: number): void {
    this.#writtenRowsByType.set(type, (this.#writtenRowsByType.get(type) ?? 0) + rows);
  }

  get #recordedCallType(): string | undefined {
    return this.#invocationDetails.call?.objectType;
  }

  /** The recorded act: the act that was judged, not the way in which it was requested. */
  get recordedAct(): RecordedAct {
    const { facts, request } = this;
    const describedAct = facts.act ?? request.act;
    const submittedKind = this.#submittedKind;
    const action = submittedKind === null ? (describedAct?.action ?? this.action) : actionOf[submittedKind];
    const { rowCount = this.#rowsWritten() } = facts;
    return {
      action,
      objectType: this.#recordedTypes(),
      template:
        describedAct?.template ?? facts.template ?? request.template ?? (submittedKind === null ? null : `${submittedKind} ?`),
      literals: describedAct?.template === undefined ? facts.literals : describedAct.literals,
      rowCount: submittedKind !== null && rowActions.has(action) ? this.#rowsWritten() : rowCount,
    };
  }

  /** Types that were read, then those that were written. */
  #recordedTypes(): string | null {
    const { objectType = null } = this.#invocationDetails;
    if (this.#writtenRowsByType.size === 0) return objectType;
    const recordedTypes = new Set(objectType?.split(','));
    for (const type of this.#writtenRowsByType.keys())
      if (type !== null && type !== this.#recordedCallType) recordedTypes.add(type);
    return recordedTypes.size === 0 ? null : [...recordedTypes].join(',');
  }

  #rowsWritten(): number {
    let writtenRowCount = 0;
    for (const [type, rows] of this.#writtenRowsByType) if (type !== this.#recordedCallType) writtenRowCount += rows;
    return writtenRowCount;
  }

  /** The call that it served, beside it; null: none. */
  get recordedCall(): RecordedAct | null {
    const { call } = this.#invocationDetails;
    return call === undefined ? null : { action: 'ingest', ...call, rowCount: this.#writtenRowsByType.get(call.objectType) ?? 0 };
  }

  get facts(): InvocationDetails {
    return this.#invocationDetails;
  }

  get action(): Action {
    return this.#invocationDetails.action ?? this.request.action;
  }

  get purpose(): string | null {
    return (this.#invocationDetails.purpose ?? this.request.purpose) || null;
  }

  /** A credential limited to purposes says for which of them it touches rows; its own upkeep needs none. */
  get purposeRequired(): boolean {
    const { purposeRequired } = this.request;
    return purposeRequired === true || (this.caller.purposes.length > 0 && touchesRows.has(this.action));
  }

  /** The request that is judged: caller, action and statements. */
  get judged(): Judged {
    if (this.#judgedAs !== null) return this.#judgedAs;
    const { breakGlass = this.request.breakGlass, accessScopeRef = this.request.accessScopeRef } = this.#invocationDetails;
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
