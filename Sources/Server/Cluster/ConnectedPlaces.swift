import Cluster
import Logging
import NIOCore
import Redis

/// The table of places on the connection to Redis that exists now. Used on the event loop of the gateway.
///
/// A command may only reach the Redis whose memory was identified, so it is bound to that connection.
final class ConnectedPlaces: PlaceTable {
    private let redis: any RedisClient
    private let places: RedisPlaces
    private let eventLoop: any EventLoop
    private let logger: Logger
    private var report: (String?) -> Void = { _ in }
    /// Posts letters on the same connection.
    var post: RedisPost?
    /// The connection that was made last; nil while there is none.
    private var connection: UInt64?

    init(_ redis: any RedisClient, of tag: NodeTag, eventLoop: any EventLoop, logger: Logger) {
        (self.redis, self.eventLoop, self.logger) = (redis, eventLoop, logger)
        places = RedisPlaces(redis, of: tag)
    }

    func observe(_ report: @escaping (String?) -> Void) {
        self.report = report
        let table = NIOLoopBound(self, eventLoop: eventLoop)
        redis.observe { state in table.value.changed(state) }
    }

    private func changed(_ state: RedisState) {
        if connection != nil {
            connection = nil
            report(nil)
            post?.disconnected()
        }
        switch state {
        case .ready(let server): identify(server)
        case .disconnected(let error): logger.warning("Redis cannot be reached: \(error)")
        case .connecting, .closed: break
        }
    }

    private func identify(_ server: RedisServer) {
        connection = server.connection
        let table = NIOLoopBound(self, eventLoop: eventLoop)
        let (places, logger) = (places, logger)
        Task {
            do throws(RedisError) {
                let store = try await places.identify(onlyOn: server.connection)
                table.execute { $0.identified(store, server.connection) }
            } catch {
                logger.error("This Redis cannot be used: \(error)")
                table.execute { $0.identifyLater(server) }
            }
        }
    }

    private func identified(_ store: String, _ connection: UInt64) {
        guard self.connection == connection else { return }
        report(store)
        post?.connected(store: store, connection: connection)
    }

    /// Tries again after the operator may have corrected something. If the connection was lost, the next one is identified instead.
    private func identifyLater(_ server: RedisServer) {
        let table = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(in: .seconds(5)) {
            if table.value.connection == server.connection { table.value.identify(server) }
        }
    }

    func send(_ command: PlaceCommand, completion: @escaping (PlaceReply?) -> Void) {
        guard let connection else {
            return eventLoop.execute(NIOLoopBound(completion, eventLoop: eventLoop).answerNothing)
        }
        let completion = NIOLoopBound(completion, eventLoop: eventLoop)
        places.send(command, onlyOn: connection) { [logger] result in
            switch result {
            case .success(let reply): completion.value(reply)
            case .failure(let failure):
                // The registry asks again. A life that was fenced also notices with its next renewal.
                logger.debug("Redis did not carry out a command about places: \(failure)")
                completion.value(nil)
            }
        }
    }

    func publish(_ sealed: [UInt8]) {
        // The next renewal publishes again.
        run("publish this node's record") { places throws(RedisError) in try await places.publish(sealed) }
    }

    func records(of tags: [NodeTag], completion: @escaping ([NodeTag: [UInt8]]?) -> Void) {
        guard connection != nil else { return completion(nil) }
        let (places, logger) = (places, logger)
        let completion = NIOLoopBound(completion, eventLoop: eventLoop)
        Task {
            let found: [NodeTag: [UInt8]]?
            do throws(RedisError) {
                found = try await places.records(of: tags)
            } catch {
                logger.debug("The records of other nodes were not read from Redis: \(error)")
                found = nil
            }
            completion.execute { $0(found) }
        }
    }

    func announceDeath(of life: NodeTag) {
        // Without this, the life cannot store anything any more either.
        run("write the end of a life") { places throws(RedisError) in try await places.announceDeath(of: life) }
    }

    /// Carries out what need not succeed.
    private func run(_ what: String, _ body: @escaping @Sendable (RedisPlaces) async throws(RedisError) -> Void) {
        guard connection != nil else { return }
        let (places, logger) = (places, logger)
        Task {
            do throws(RedisError) {
                try await body(places)
            } catch {
                logger.debug("Redis did not \(what): \(error)")
            }
        }
    }
}

extension NIOLoopBound where Value == (PlaceReply?) -> Void {
    fileprivate var answerNothing: @Sendable () -> Void { { value(nil) } }
}

extension NIOLoopBound {
    /// Calls a function with the value on the event loop.
    func execute(_ body: @escaping @Sendable (Value) -> Void) {
        eventLoop.execute { body(value) }
    }
}
