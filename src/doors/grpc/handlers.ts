/** Methods of a gRPC door: each call is let in, answered, and refused in the words of the protocol. */
import type {
  handleBidiStreamingCall,
  handleClientStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  sendUnaryData,
  ServerDuplexStream,
  ServerReadableStream,
  ServerWritableStream,
} from '@grpc/grpc-js';
import type { Action } from '../../governance/gate-contract.ts';
import { RpcCall, type RpcDependencies } from './call.ts';
import { statusOf } from './errors.ts';

export class RpcHandlers {
  readonly #parts: RpcDependencies;
  readonly #door: string;

  constructor(parts: RpcDependencies, door: string) {
    this.#parts = parts;
    this.#door = door;
  }

  readonly unary =
    <Q, R>(action: Action, run: (rpcCall: RpcCall, request: Q) => Promise<R>): handleUnaryCall<Q, R> =>
    (raw, reply) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, raw);
      void this.#answerUnary(rpcCall, action, () => run(rpcCall, raw.request), reply);
    };

  readonly clientStreaming =
    <Q, R>(
      action: Action,
      run: (rpcCall: RpcCall, stream: ServerReadableStream<Q, R>) => Promise<R>,
    ): handleClientStreamingCall<Q, R> =>
    (raw, reply) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, raw);
      void this.#answerUnary(rpcCall, action, () => run(rpcCall, raw), reply);
    };

  readonly serverStreaming =
    <Q, R>(
      action: Action,
      run: (rpcCall: RpcCall, request: Q, stream: ServerWritableStream<Q, R>) => Promise<void>,
    ): handleServerStreamingCall<Q, R> =>
    (stream) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, stream);
      void this.#answerStream(rpcCall, action, stream, () => run(rpcCall, stream.request, stream));
    };

  readonly duplex =
    <Q, R>(
      action: Action,
      run: (rpcCall: RpcCall, stream: ServerDuplexStream<Q, R>) => Promise<void>,
    ): handleBidiStreamingCall<Q, R> =>
    (stream) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, stream);
      void this.#answerStream(rpcCall, action, stream, () => run(rpcCall, stream));
    };

  async #answerUnary<R>(rpcCall: RpcCall, action: Action, run: () => Promise<R>, reply: sendUnaryData<R>): Promise<void> {
    try {
      rpcCall.enter();
      const answer = await run();
      rpcCall.end();
      reply(null, answer);
    } catch (error) {
      const refusal = await rpcCall.refusal(error, action);
      rpcCall.end();
      this.#refuse(() => reply(statusOf(refusal, rpcCall.id)));
    }
  }

  async #answerStream<Q, R>(
    rpcCall: RpcCall,
    action: Action,
    stream: ServerWritableStream<Q, R> | ServerDuplexStream<Q, R>,
    run: () => Promise<void>,
  ): Promise<void> {
    try {
      rpcCall.enter();
      await run();
      rpcCall.end();
      stream.end();
    } catch (error) {
      const refusal = await rpcCall.refusal(error, action);
      rpcCall.end();
      this.#refuse(() => stream.emit('error', statusOf(refusal, rpcCall.id)));
    }
  }

  #refuse(tell: () => void): void {
    this.#parts.endings.next({
      work: () => {
        tell();
        return 0;
      },
    });
  }
}
