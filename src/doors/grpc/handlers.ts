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

  constructor(rpcParts: RpcDependencies, doorName: string) {
    this.#parts = rpcParts;
    this.#door = doorName;
  }

  readonly unary =
    <Q, R>(callAction: Action, runCall: (rpcCall: RpcCall, request: Q) => Promise<R>): handleUnaryCall<Q, R> =>
    (grpcCall, sendReply) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, grpcCall);
      void this.#answerUnary(rpcCall, callAction, () => runCall(rpcCall, grpcCall.request), sendReply);
    };

  readonly clientStreaming =
    <Q, R>(
      callAction: Action,
      runCall: (rpcCall: RpcCall, stream: ServerReadableStream<Q, R>) => Promise<R>,
    ): handleClientStreamingCall<Q, R> =>
    (grpcCall, sendReply) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, grpcCall);
      void this.#answerUnary(rpcCall, callAction, () => runCall(rpcCall, grpcCall), sendReply);
    };

  readonly serverStreaming =
    <Q, R>(
      callAction: Action,
      runCall: (rpcCall: RpcCall, request: Q, grpcStream: ServerWritableStream<Q, R>) => Promise<void>,
    ): handleServerStreamingCall<Q, R> =>
    (grpcStream) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, grpcStream);
      void this.#answerStream(rpcCall, callAction, grpcStream, () => runCall(rpcCall, grpcStream.request, grpcStream));
    };

  readonly duplex =
    <Q, R>(
      callAction: Action,
      runCall: (rpcCall: RpcCall, grpcStream: ServerDuplexStream<Q, R>) => Promise<void>,
    ): handleBidiStreamingCall<Q, R> =>
    (grpcStream) => {
      const rpcCall = new RpcCall(this.#parts, this.#door, grpcStream);
      void this.#answerStream(rpcCall, callAction, grpcStream, () => runCall(rpcCall, grpcStream));
    };

  async #answerUnary<R>(
    rpcCall: RpcCall,
    callAction: Action,
    runCall: () => Promise<R>,
    sendReply: sendUnaryData<R>,
  ): Promise<void> {
    try {
      rpcCall.enter();
      const unaryReply = await runCall();
      rpcCall.end();
      sendReply(null, unaryReply);
    } catch (callError) {
      const rpcRefusal = await rpcCall.refusal(callError, callAction);
      rpcCall.end();
      this.#refuse(() => sendReply(statusOf(rpcRefusal, rpcCall.id)));
    }
  }

  async #answerStream<Q, R>(
    rpcCall: RpcCall,
    callAction: Action,
    grpcStream: ServerWritableStream<Q, R> | ServerDuplexStream<Q, R>,
    runCall: () => Promise<void>,
  ): Promise<void> {
    try {
      rpcCall.enter();
      await runCall();
      rpcCall.end();
      grpcStream.end();
    } catch (callError) {
      const rpcRefusal = await rpcCall.refusal(callError, callAction);
      rpcCall.end();
      this.#refuse(() => grpcStream.emit('error', statusOf(rpcRefusal, rpcCall.id)));
    }
  }

  #refuse(sendRefusal: () => void): void {
    this.#parts.endings.next({
      work: () => {
        sendRefusal();
        return 0;
      },
    });
  }
}
