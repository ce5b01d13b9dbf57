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

export class Handlers {
  readonly #parts: RpcDependencies;
  readonly #door: string;

  constructor(parts: RpcDependencies, door: string) {
    this.#parts = parts;
    this.#door = door;
  }

  readonly unary =
    <Q, R>(action: Action, run: (call: RpcCall, request: Q) => Promise<R>): handleUnaryCall<Q, R> =>
    (raw, reply) => {
      const call = new RpcCall(this.#parts, this.#door, raw);
      void this.#answerUnary(call, action, () => run(call, raw.request), reply);
    };

  readonly clientStreaming =
    <Q, R>(
      action: Action,
      run: (call: RpcCall, stream: ServerReadableStream<Q, R>) => Promise<R>,
    ): handleClientStreamingCall<Q, R> =>
    (raw, reply) => {
      const call = new RpcCall(this.#parts, this.#door, raw);
      void this.#answerUnary(call, action, () => run(call, raw), reply);
    };

  readonly serverStreaming =
    <Q, R>(
      action: Action,
      run: (call: RpcCall, request: Q, stream: ServerWritableStream<Q, R>) => Promise<void>,
    ): handleServerStreamingCall<Q, R> =>
    (stream) => {
      const call = new RpcCall(this.#parts, this.#door, stream);
      void this.#answerStream(call, action, stream, () => run(call, stream.request, stream));
    };

  readonly duplex =
    <Q, R>(
      action: Action,
      run: (call: RpcCall, stream: ServerDuplexStream<Q, R>) => Promise<void>,
    ): handleBidiStreamingCall<Q, R> =>
    (stream) => {
      const call = new RpcCall(this.#parts, this.#door, stream);
      void this.#answerStream(call, action, stream, () => run(call, stream));
    };

  async #answerUnary<R>(call: RpcCall, action: Action, run: () => Promise<R>, reply: sendUnaryData<R>): Promise<void> {
    try {
      call.enter();
      const answer = await run();
      call.end();
      reply(null, answer);
    } catch (error) {
      const refusal = await call.refusal(error, action);
      call.end();
      this.#refuse(() => reply(statusOf(refusal, call.id)));
    }
  }

  async #answerStream<Q, R>(
    call: RpcCall,
    action: Action,
    stream: ServerWritableStream<Q, R> | ServerDuplexStream<Q, R>,
    run: () => Promise<void>,
  ): Promise<void> {
    try {
      call.enter();
      await run();
      call.end();
      stream.end();
    } catch (error) {
      const refusal = await call.refusal(error, action);
      call.end();
      this.#refuse(() => stream.emit('error', statusOf(refusal, call.id)));
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
