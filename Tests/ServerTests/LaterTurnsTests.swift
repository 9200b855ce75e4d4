import NIOCore
import NIOPosix
import Testing

@testable import Server

@Suite("Work in later turns of the event loop", .timeLimit(.minutes(3))) struct LaterTurnsTests {
    private final class BytesArrived: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { body() }
    }

    /// What happens on the loop.
    private final class Record {
        var hasArrived = false
        var turns = 0
        var order: [Int] = []
    }

    @Test("sockets are read between two turns, even if the work never ends")
    func sockets() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let record = NIOLoopBoundBox.makeBoxSendingValue(Record(), eventLoop: loop)
        let turns = try await loop.submit {
            NIOLoopBound(LaterTurns(eventLoop: loop), eventLoop: loop)
        }.get()
        let server = try await ServerBootstrap(group: loop).childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(BytesArrived { record.value.hasArrived = true })
            }
        }.bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: try #require(server.localAddress)).get()
        let done = loop.makePromise(of: Void.self)
        loop.execute {
            func work() {
                record.value.turns += 1
                if record.value.hasArrived { done.succeed() } else { turns.value.run(work) }
            }
            turns.value.run(work)
        }
        try await client.writeAndFlush(ByteBuffer(string: "x"))
        try await done.futureResult.get()
        try await client.close()
        try await server.close()
    }

    @Test("work runs once and in order, and what it submits runs after the rest")
    func order() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let order = try await loop.submit { () -> EventLoopFuture<[Int]> in
            let turns = LaterTurns(eventLoop: loop)
            let (record, done) = (Record(), loop.makePromise(of: [Int].self))
            turns.run {
                record.order.append(1)
                turns.run {
                    record.order.append(3)
                    done.succeed(record.order)
                }
            }
            turns.run { record.order.append(2) }
            return done.futureResult
        }.flatMap { $0 }.get()
        #expect(order == [1, 2, 3])
    }
}
