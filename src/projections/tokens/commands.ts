/** Minting, rotating and revoking tokens: a command and the registry to a `token` entry. Pure. */
import { ServiceError } from '../../errors.ts';
import type { TokenBody, TokenRecord } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import type { MintToken, RevokeToken, RotateToken } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { Tokens, RegisteredToken } from './projection.ts';

export function decideMint(command: MintToken, directory: Tokens, context: DecideContext, next: NextPosition): Decision {
  checkUnused(command.token, directory, next);
  if (directory.liveCount(next.time) >= context.tokensMax) {
    throw new ServiceError('REL_TOKEN_CAP', `${context.tokensMax} tokens are registered`);
  }
  return decide('mint-token', { kind: 'token', change: 'minted', token: command.token, replaces: null }, context, next);
}

/** Ends the old token and registers the new one in the same entry: there is no instant at which both or neither stand. */
export function decideRotate(command: RotateToken, directory: Tokens, context: DecideContext, next: NextPosition): Decision {
  const old = standingToken(command.id, directory);
  checkUnused(command.token, directory, next);
  return decide(
    'rotate-token',
    { kind: 'token', change: 'rotated', token: command.token, replaces: old.record.id },
    context,
    next,
  );
}

export function decideRevoke(command: RevokeToken, directory: Tokens, context: DecideContext, next: NextPosition): Decision {
  const old = standingToken(command.id, directory);
  return decide('revoke-token', { kind: 'token', change: 'revoked', token: old.record, replaces: null }, context, next);
}

function decide(
  kind: 'mint-token' | 'rotate-token' | 'revoke-token',
  body: TokenBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(kind, body.token.id, [{ context: context.entry, body }], next);
}

function standingToken(id: string, directory: Tokens): RegisteredToken {
  const token = directory.token(id);
  if (!token || token.endedAt !== null) throw new ServiceError('REL_NOT_FOUND', 'no such token');
  return token;
}

function checkUnused(token: TokenRecord, directory: Tokens, next: NextPosition): void {
  if (directory.token(token.id) || directory.tokenBySecretHash(token.secretHash, next.time)) {
    throw new ServiceError('REL_CONFLICT', 'a token with this id or secret is registered');
  }
}
