/**
 * The extended protocol: statements that are prepared, portals that are bound to them, errors until Sync. All up to a Sync is one
 * transaction: a write waits for the Sync, which runs it by itself where nothing else came, and commits it with the others otherwise.
 */
import { ServiceError } from '../../errors.ts';
import type { Executed } from '../../planner/planner-contract.ts';
import type { ParameterType } from '../../planner/syntax/statement.ts';
import type { Frontend } from './codec.ts';
import { inTurns, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { type SqlCommand, commandOf, isControl, splitStatements } from './parse-command.ts';
import { type BoundParameter, describedOid } from './parameters.ts';
import type { PostgresReplies } from './replies.ts';
import type { DataRows } from './data-rows.ts';
import type { Ask, CommandRunner } from './command-runner.ts';
import { ProtocolRefusal } from './errors.ts';

type ExtendedMessage = Extract<Frontend, { readonly kind: 'parse' | 'bind' | 'describe' | 'execute' | 'close' }>;
type MessageOfKind<K extends ExtendedMessage['kind']> = Extract<ExtendedMessage, { readonly kind: K }>;

interface PreparedStatement {
  readonly text: string;
  /** The command; null: an empty statement. */
  readonly command: SqlCommand | null;
  readonly oids: readonly number[];
  /** The types of its parameters, once they are inferred. */
  types: readonly ParameterType[] | null;
}

interface Portal {
  readonly prepared: PreparedStatement;
  readonly values: readonly (Buffer | null)[];
  readonly formats: readonly number[];
  readonly resultFormats: readonly number[];
  ran: { readonly executed: Executed; readonly rows: DataRows } | null;
}

interface HeldExecute {
  readonly portal: Portal;
  readonly message: MessageOfKind<'execute'>;
}

/** Names of one connection, of statements and of portals. */
const statementNamesMax = 10_000;

export class ExtendedQuery {
  readonly #runner: CommandRunner;
  readonly #replies: PostgresReplies;
  readonly #yieldTurn: () => Promise<void>;
  readonly #statements = new Map<string, PreparedStatement>();
  readonly #portals = new Map<string, Portal>();
  /** The portal without a name, which every statement of most clients has: a map would be emptied by each. */
  #unnamed: Portal | null = null;
  /** A write that waits for Sync. */
  #held: HeldExecute | null = null;
  #closings: MessageOfKind<'close'>[] = [];
  #skipping = false;

  constructor(statementRunner: CommandRunner, extendedReplies: PostgresReplies, yieldTurn: () => Promise<void>) {
    this.#runner = statementRunner;
    this.#replies = extendedReplies;
    this.#yieldTurn = yieldTurn;
    statementRunner.onDeallocate = (statementName) => {
      if (statementName === null) return this.#statements.clear();
      this.#statement(statementName);
      this.#deallocate(statementName);
    };
  }

  /** An error was reported: messages are skipped until Sync. */
  get skipping(): boolean {
    return this.#skipping;
  }

  /** Undefined where it is handled at once. */
  handle(extendedMessage: ExtendedMessage): Promise<void> | void {
    if (this.#skipping) return;
    if (this.#held === null) return this.#take(extendedMessage);
    if (extendedMessage.kind === 'close') return void this.#closings.push(extendedMessage);
    return this.flush().then(() => (this.#skipping ? undefined : this.#take(extendedMessage)));
  }

  #take(extendedMessage: ExtendedMessage): Promise<void> | void {
    const failMessage = (error: unknown): Promise<void> => this.#fail(error, this.#textOf(extendedMessage));
    try {
      this.#runner.begins();
      return this.#step(extendedMessage)?.catch(failMessage);
    } catch (messageError) {
      return failMessage(messageError);
    }
  }

  /** Runs, or commits, what waits for the Sync. */
  finish(): Promise<void> | void {
    if (this.#held !== null) return this.#finishHeld(this.#held);
    return this.#runner.hasImplicit ? this.#runner.endImplicit().catch((error: unknown) => this.#fail(error)) : undefined;
  }

  async #finishHeld({ portal: heldPortal, message: heldExecute }: HeldExecute): Promise<void> {
    this.#held = null;
    try {
      await this.#execute(heldPortal, heldExecute.rowsMax);
      for (const heldClose of this.#closings) this.#close(heldClose);
    } catch (executeError) {
      await this.#fail(executeError, heldPortal.prepared.text);
    }
    this.#closings = [];
  }

  /** A transaction may be over: then its portals are. */
  sync(): void {
    this.#skipping = false;
    if (this.#runner.status === 'T') return;
    this.#unnamed = null;
    if (this.#portals.size > 0) this.#portals.clear();
  }

  /** More follows the write than its Sync: it becomes the first of a transaction, which the Sync commits. */
  async flush(): Promise<void> {
    if (this.#held === null) return;
    const { portal: heldPortal, message: heldExecute } = this.#held;
    const heldCloses = this.#closings;
    this.#held = null;
    this.#closings = [];
    try {
      this.#runner.beginImplicit();
      await this.#execute(heldPortal, heldExecute.rowsMax);
      for (const heldClose of heldCloses) this.#close(heldClose);
    } catch (executeError) {
      await this.#fail(executeError, heldPortal.prepared.text);
    }
  }

  /** Makes all replies so far ready to be sent. */
  async release(): Promise<void> {
    await this.flush();
  }

  /** Reports an error that occurred outside of its messages. */
  refuse(refusedError: unknown): Promise<void> {
    return this.#fail(refusedError);
  }

  async #fail(messageError: unknown, failedSql?: string): Promise<void> {
    this.#skipping = true;
    await this.#runner.fail(messageError, failedSql);
  }

  #step(extendedMessage: ExtendedMessage): Promise<void> | void {
    switch (extendedMessage.kind) {
      case 'parse':
        return this.#parse(extendedMessage);
      case 'bind':
        return this.#bind(extendedMessage);
      case 'describe':
        return extendedMessage.what === 'statement'
          ? this.#describeStatement(extendedMessage.name)
          : this.#describePortal(extendedMessage.name);
      case 'execute': {
        const executedPortal = this.#portal(extendedMessage.portal);
        const { command } = executedPortal.prepared;
        if (command?.kind === 'ask' && command.mayWrite && executedPortal.ran === null && !this.#runner.isOpen) {
          this.#held = { portal: executedPortal, message: extendedMessage };
          return;
        }
        return this.#execute(executedPortal, extendedMessage.rowsMax);
      }
      case 'close':
        return this.#close(extendedMessage);
    }
  }

  #parse(parseMessage: MessageOfKind<'parse'>): Promise<void> | void {
    const parseSteps = this.#parseSteps(parseMessage);
    if (parseSteps.next().done !== true) return inTurns(parseSteps, this.#yieldTurn);
  }

  *#parseSteps({ name: statementName, text: statementText, types: parameterOids }: MessageOfKind<'parse'>): Steps<void> {
    if (statementName !== '' && this.#statements.has(statementName))
      throw new ProtocolRefusal('42P05', 'REL_CONFLICT', `a statement ${JSON.stringify(statementName)} is prepared already`);
    if (this.#statements.size >= statementNamesMax)
      throw new ServiceError('REL_TOO_LARGE', `a connection prepares at most ${statementNamesMax} statements: close some`);
    const [soleStatement, secondStatement] = yield* splitStatements(statementText);
    if (secondStatement !== undefined)
      throw new ProtocolRefusal(
        '42601',
        'REL_PARSE',
        'a prepared statement holds one statement: send several by the simple protocol',
      );
    const parsedCommand = soleStatement === undefined ? null : yield* commandOf(soleStatement);
    this.#statements.set(statementName, { text: statementText, command: parsedCommand, oids: parameterOids, types: null });
    this.#replies.bare('1');
  }

  #bind({
    portal: portalName,
    statement: statementName,
    formats: parameterFormats,
    values: parameterValues,
    resultFormats,
  }: MessageOfKind<'bind'>): void {
    const preparedStatement = this.#statement(statementName);
    if (parameterFormats.length > 1 && parameterFormats.length !== parameterValues.length)
      throw new ProtocolRefusal(
        '08P01',
        'REL_INVALID',
        `${parameterFormats.length} formats are given for ${parameterValues.length} values`,
      );
    if (portalName !== '' && this.#portals.has(portalName))
      throw new ProtocolRefusal('42P03', 'REL_CONFLICT', `a portal ${JSON.stringify(portalName)} is open already`);
    if (this.#portals.size >= statementNamesMax)
      throw new ServiceError('REL_TOO_LARGE', `a connection opens at most ${statementNamesMax} portals: close some`);
    const boundPortal: Portal = {
      prepared: preparedStatement,
      formats: parameterFormats,
      values: parameterValues,
      resultFormats,
      ran: null,
    };
    if (portalName === '') this.#unnamed = boundPortal;
    else this.#portals.set(portalName, boundPortal);
    this.#replies.bare('2');
  }

  async #describeStatement(statementName: string): Promise<void> {
    const preparedStatement = this.#statement(statementName);
    const { command, oids } = preparedStatement;
    const extendedReplies = this.#replies;
    if (command?.kind !== 'ask' || isControl(command)) {
      extendedReplies.parameterTypes([]);
      if (command?.kind === 'show')
        extendedReplies.fields(this.#runner.fieldsOf(this.#runner.show(command.name).answer.columns, []));
      else extendedReplies.bare('n');
      return;
    }
    const { parameters, columns } = await this.#runner.describe(command, oids);
    preparedStatement.types = parameters;
    const listOids = new Map(command.spreads.map(({ parameter, stated: statedListOid }) => [parameter, statedListOid]));
    extendedReplies.parameterTypes(parameters.map((type, i) => describedOid(oids[i] ?? 0, type, listOids.get(i + 1))));
    if (columns.length === 0) extendedReplies.bare('n');
    else extendedReplies.fields(this.#runner.fieldsOf(columns, []));
  }

  /** A question runs when its columns are asked for: they come with the rows. */
  async #describePortal(portalName: string): Promise<void> {
    const describedPortal = this.#portal(portalName);
    const { command, oids } = describedPortal.prepared;
    if (command?.kind === 'ask' && command.mayWrite && describedPortal.ran === null) {
      if (isControl(command) || !command.returns) return this.#replies.bare('n');
      const { columns, parameters } = await this.#runner.describe(command, oids);
      describedPortal.prepared.types = parameters;
      if (columns.length === 0) return this.#replies.bare('n');
      return this.#replies.fields(this.#runner.fieldsOf(columns, describedPortal.resultFormats));
    }
    if (command?.kind !== 'ask' && command?.kind !== 'show') return this.#replies.bare('n');
    const { rows: portalRows } = await this.#run(describedPortal, command);
    this.#replies.fields(portalRows.fields);
  }

  async #execute(executedPortal: Portal, rowsMax: number): Promise<void> {
    const { command: portalCommand } = executedPortal.prepared;
    if (portalCommand === null) return this.#replies.bare('I');
    if (portalCommand.kind !== 'ask' && portalCommand.kind !== 'show') return this.#runner.run(portalCommand);
    const { executed: executedStatement, rows: portalRows } = await this.#run(executedPortal, portalCommand);
    if (portalCommand.kind === 'ask' && isControl(portalCommand)) {
      if (executedStatement.answer.rowCount > 0 && portalCommand.tag === null)
        this.#replies.notice('what this statement answers is shown by the simple protocol only');
      return this.#runner.complete(portalCommand, executedStatement);
    }
    const hasEnded = await this.#runner.send(portalRows, rowsMax === 0 ? Number.POSITIVE_INFINITY : rowsMax);
    if (hasEnded) this.#runner.complete(portalCommand, executedStatement);
    else this.#replies.bare('s');
  }

  async #run(
    ranPortal: Portal,
    portalCommand: Ask | Extract<SqlCommand, { readonly kind: 'show' }>,
  ): Promise<NonNullable<Portal['ran']>> {
    if (ranPortal.ran !== null) return ranPortal.ran;
    const { values, formats, resultFormats, prepared: preparedStatement } = ranPortal;
    const keepParameterTypes = (types: readonly ParameterType[]): void => void (preparedStatement.types = types);
    const portalParameters: BoundParameter = {
      values,
      formats,
      oids: preparedStatement.oids,
      types: preparedStatement.types,
      onTypes: keepParameterTypes,
    };
    const executedStatement =
      portalCommand.kind === 'show'
        ? this.#runner.show(portalCommand.name)
        : await this.#runner.ask(portalCommand, portalParameters);
    ranPortal.ran = { executed: executedStatement, rows: this.#runner.rowsOf(executedStatement.answer, resultFormats) };
    return ranPortal.ran;
  }

  #close({ what: closedKind, name: closedName }: MessageOfKind<'close'>): void {
    if (closedKind === 'statement') this.#deallocate(closedName);
    else if (closedName === '') this.#unnamed = null;
    else this.#portals.delete(closedName);
    this.#replies.bare('3');
  }

  #deallocate(statementName: string): void {
    this.#statements.delete(statementName);
  }

  #statement(statementName: string): PreparedStatement {
    const preparedStatement = this.#statements.get(statementName);
    if (preparedStatement === undefined)
      throw new ProtocolRefusal(
        '26000',
        'REL_NOT_FOUND',
        `no statement ${JSON.stringify(statementName)} is prepared on this connection`,
      );
    return preparedStatement;
  }

  #portal(portalName: string): Portal {
    const portal = this.#portalOf(portalName);
    if (portal === undefined)
      throw new ProtocolRefusal('34000', 'REL_NOT_FOUND', `no portal ${JSON.stringify(portalName)} is open`);
    return portal;
  }

  #portalOf(portalName: string): Portal | undefined {
    return portalName === '' ? (this.#unnamed ?? undefined) : this.#portals.get(portalName);
  }

  #textOf(extendedMessage: ExtendedMessage): string | undefined {
    switch (extendedMessage.kind) {
      case 'parse':
        return extendedMessage.text;
      case 'execute':
        return this.#portalOf(extendedMessage.portal)?.prepared.text;
      case 'describe':
        if (extendedMessage.what === 'portal') return this.#portalOf(extendedMessage.name)?.prepared.text;
        return this.#statements.get(extendedMessage.name)?.text;
    }
    return undefined;
  }
}
