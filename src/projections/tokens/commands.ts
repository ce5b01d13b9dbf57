/** Minting, rotating and revoking tokens: a command and the registry to a `token` entry. Pure. */
import { ServiceError } from '../../errors.ts';
import type { TokenBody, TokenRecord } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import type { MintToken, RevokeToken, RotateToken } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { Tokens, RegisteredToken } from './projection.ts';

export function decideMint(command: MintToken, knownTokens: Tokens, context: DecideContext, next: NextPosition): Decision {
  checkTokenUnused(command.token, knownTokens, next);
  if (knownTokens.liveCount(next.time) >= context.tokensMax) {
    throw new ServiceError('REL_TOKEN_CAP', `${context.tokensMax} tokens are registered`);
  }
  return decideToken('mint-token', { kind: 'token', change: 'minted', token: command.token, replaces: null }, context, next);
}

/** Ends the old token and registers the new one in the same entry: there is no instant at which both or neither stand. */
export function decideRotate(command: RotateToken, knownTokens: Tokens, context: DecideContext, next: NextPosition): Decision {
  const rotatedToken = requireStandingToken(command.id, knownTokens);
  checkTokenUnused(command.token, knownTokens, next);
  return decideToken(
    'rotate-token',
    { kind: 'token', change: 'rotated', token: command.token, replaces: rotatedToken.record.id },
    context,
    next,
  );
}

export function decideRevoke(command: RevokeToken, knownTokens: Tokens, context: DecideContext, next: NextPosition): Decision {
  const revokedToken = requireStandingToken(command.id, knownTokens);
  return decideToken(
    'revoke-token',
    { kind: 'token', change: 'revoked', token: revokedToken.record, replaces: null },
    context,
    next,
  );
}

function decideToken(
  tokenCommand: 'mint-token' | 'rotate-token' | 'revoke-token',
  tokenBody: TokenBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(tokenCommand, tokenBody.token.id, [{ context: context.entry, body: tokenBody }], next);
}

function requireStandingToken(tokenId: string, directory: Tokens): RegisteredToken {
  const registeredToken = directory.token(tokenId);
  if (!registeredToken || registeredToken.endedAt !== null) throw new ServiceError('REL_NOT_FOUND', 'no such token');
  return registeredToken;
}

function checkTokenUnused(newToken: TokenRecord, directory: Tokens, next: NextPosition): void {
  if (directory.token(newToken.id) || directory.tokenBySecretHash(newToken.secretHash, next.time)) {
    throw new ServiceError('REL_CONFLICT', 'a token with this id or secret is registered');
  }
}
