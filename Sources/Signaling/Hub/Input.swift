import Cluster
import Wire

/// An event that the shell observed.
public enum Input: Equatable, Sendable {
    indirect case arrived(Arrival)
    /// A legacy client (RouletteTok's protocol) connected. Its requests arrive as `asked`.
    indirect case legacyArrived(LegacyArrival)
    case asked(SocketID, RouletteTokRequest)
    /// A legacy client's connection dropped, but its socket stays until the client recovers the connection (`recovered`) or
    /// the time for that is over (`closed`). Only clients of Socket.IO 4 can recover.
    case suspended(SocketID)
    case recovered(SocketID)
    /// A client of PerchRTC's protocol connected. Its messages arrive as `perch`.
    indirect case perchArrived(PerchArrival)
    indirect case perch(SocketID, PerchRequest)
    case message(SocketID, Envelope<ClientMessage>)
    case unreadable(SocketID, UnreadableMessage)
    /// A client requested a new WHIP or WHEP resource. Later requests for the resource arrive as `requested`.
    indirect case resourceArrived(ResourceArrival)
    case requested(SocketID, ResourceRequest)
    case closed(SocketID, leaving: Bool)
    /// The client of this socket now sends from another address. Only legacy clients can change their address: other
    /// clients open a new socket.
    case moved(SocketID, address: String)
    case banned(Ban)
    /// The operator lifted a ban.
    case unbanned(IdentityID)
    /// An operator warns a person, with a sentence or without.
    case warned(IdentityID, String?)
    /// A sample of a camera arrived, as JPEG. The shell has verified whose it is.
    case sampled(SampleSource, [UInt8])
    /// The operator's program has judged a sample.
    indirect case judged(SampleSource, SampleJudgment)
    /// An event from the media plane.
    case media(MediaEvent)
    /// Disconnects the client on this socket, because its address was banned or an operator removed the client.
    case expel(SocketID, WireError, CloseCode)
    /// Storage could not commit changes to these people. The shell has closed their sockets.
    case storageFailed(Set<IdentityID>)
    /// The result of a query.
    indirect case answered(Question, Finding)
    /// The push services report that no device of this person can still receive push notifications.
    case unreachable(IdentityID)
    /// An operator ends a room.
    case closeRoom(RoomName)
    /// A request from an operator or application about rooms.
    indirect case operated(OperatorRequest)
    /// Restores a persistent room. Sent at startup.
    indirect case restoredRoom(StoredRoom)
    /// Storage could not commit changes to these rooms. The shell has loaded all persistent rooms again.
    indirect case roomsNotStored(Set<RoomID>, [StoredRoom])
    /// Restores a session's revoked tokens and mute. Sent at startup.
    case moderated(SessionModeration)
    /// The operator rotated the API secret, or changed settings that apply while the server runs. The pool and the
    /// directory keep the rules with which they were created.
    indirect case settingsChanged(HubSettings)
    /// The free space of the disk was measured, which happens periodically and before each upload. A measurement begins only
    /// after the result of the previous one was sent.
    case diskMeasured(DiskMeasurement)
    /// A call was in progress when the server stopped, and must be restored with its two people. Sent at startup,
    /// before any client connects.
    indirect case restored(StoredCall, caller: PersonRecord, callee: PersonRecord)

    /// Whether the disk of the recordings has enough space for another archive. True until this says otherwise.
    case recordingSpace(isEnough: Bool)
    /// An event from the recorder.
    indirect case recording(RecordingEvent)
    /// The streams of an archive were composed into this file.
    case composed(ArchiveID, ComposedFile)
    /// The streams of an archive could not be composed. The recorded streams remain.
    case notComposed(ArchiveID)
    /// Composing an archive waits for this; nil if it no longer waits.
    case composingWaits(ArchiveID, ComposingObstacle?)
    /// The composer has removed an archive that waited, because the shell deletes the archive.
    case archiveGivenUp(ArchiveID)
    /// Changes to this archive could not be stored.
    case archiveNotStored(ArchiveID)
    /// An archive that was not finished when the server stopped. Sent at startup, before any event from the recorder.
    /// `hasFiles` is false if nothing was recorded, so that the recorder has nothing to recover.
    indirect case restoredArchive(ArchiveRecord, hasFiles: Bool)
    /// An event from the part of the server that composes broadcasts.
    case broadcast(BroadcastReport)
    /// Changes to this broadcast could not be stored.
    case broadcastNotStored(BroadcastID)
    /// A broadcast that was running when the server stopped. Sent at startup.
    indirect case restoredBroadcast(BroadcastRecord)

    // Answers of the cluster's registry of places. Only in a cluster.
    /// This node has the place. Contains what storage kept for the machine after the claim. If storage cannot be read, the shell
    /// releases the place and sends `placesUnavailable` instead.
    indirect case claimed(PlaceKey, StoredState)
    /// Another node has the place.
    case placed(PlaceKey, at: NodeTag)
    /// No node has the place. Only answers a question that does not claim it.
    case unplaced(PlaceKey)
    /// The registry does not answer.
    case placesUnavailable(PlaceKey)
    /// Another node has a place that this node had claimed, because the registry had forgotten it.
    case lostPlace(PlaceKey)
    /// What an operator has requested of this node: `serving`, `draining` or `drained`. Unless it is `serving`, the shell sends this
    /// every second. Idle clients are then sent to other nodes, and this node claims no places. Exception: while it is `draining`, it
    /// admits clients that ask for it, and claims the places of their people.
    case service(NodeCondition)
    /// How many clients the other nodes had, and how many people waited there, when they last published it.
    case othersCounted(ClientCounts)
    /// The life of a node is over. `heir` is the node that ended it, and restores its calls.
    case nodeLost(NodeTag, heir: NodeTag)
    /// A letter that another node has posted to this one. The shell has verified which node.
    indirect case received(Letter, from: NodeTag)
    /// Letters between this node and that one were lost, in one direction or the other. Both begin again with each other.
    case lettersLost(NodeTag)
    /// An event about a relay for its other end, which is on that node.
    case relay(RelayLetter, to: NodeTag)
    /// Media can now cross between this node and these lives of other nodes, and no others. After the first such input, rooms, chats and
    /// calls can span nodes.
    case mediaCrosses(to: Set<NodeTag>)
}

extension Hub {
    /// Turns an input into letters.
    mutating func receive(_ input: Input) {
        switch input {
        case .arrived(let arrival): clients.receive(arrival, &context)
        case .legacyArrived(let arrival): clients.makeLegacy(arrival, &context)
        case .perchArrived(let arrival): clients.makePerch(arrival, &context)
        case .perch(let socket, let request): clients.tell(socket, .perch(socket, request), &context)
        case .resourceArrived(let arrival):
            let resource = clients.makeResource(arrival, &context)
            if let resource { timers.schedule(.client(resource.id), resource.wakeUp) }
        case .asked(let socket, let request): clients.tell(socket, .asked(socket, request), &context)
        case .suspended(let socket): clients.tell(socket, .suspended, &context)
        case .recovered(let socket): clients.tell(socket, .recovered, &context)
        case .message(let socket, let envelope): clients.tell(socket, .message(socket, envelope), &context)
        case .unreadable(let socket, let message): clients.tell(socket, .unreadable(socket, message), &context)
        case .requested(let socket, let request): clients.tell(socket, .requested(request), &context)
        case .expel(let socket, let error, let code): clients.tell(socket, .expel(error, code), &context)
        case .moved(let socket, let address): clients.tell(socket, .moved(address: address), &context)
        case .closed(let socket, let leaving): clients.closed(socket, leaving: leaving, &context)
        case .banned(let ban): banned(ban)
        case .unbanned(let identity): context.tell(.person(identity, .unbanned))
        case .warned(let identity, let text): context.tell(.person(identity, .warned(text)))
        case .sampled(let source, let jpeg):
            context.tell(.session(source.session, .sampled(source.match, source.person, jpeg)))
            context.tell(.person(source.person, .sampled(source.match)))
        case .judged(let source, let judgment):
            context.tell(.session(source.session, .judged(source.match, source.person, judgment.verdict)))
            context.tell(.person(source.person, .judged(source.match, judgment)))
        case .media(let event):
            if case .refused(_, _, let error) = event, error.code == .bandwidthExceeded {
                context.figures.refusals.connections += 1
            }
            context.tell(event.letter)
        case .storageFailed(let people):
            for person in people.sorted() { context.tell(.person(person, .storageFailed)) }
        case .answered(let question, let finding): answer(question, finding)
        case .unreachable(let identity):
            context.tell(.person(identity, .presence(.pushChanged(isReachable: false))))
        case .closeRoom(let name): context.tell(.room(name, .close))
        case .operated(let request):
            if case .session(let session, let operation) = request.action {
                context.tell(.session(session, .operated(operation, request.socket)))
            } else {
                context.tell(.roomRegistry(.operate(request)))
            }
        // In a cluster, a room and a session's moderation are loaded when their place is claimed.
        case .restoredRoom(let room): if places == nil { context.tell(.roomRegistry(.restore(room))) }
        case .roomsNotStored(let ids, let stored): context.tell(.roomRegistry(.notStored(ids, stored)))
        case .moderated(let moderation):
            if places == nil { context.tell(.session(moderation.session, .moderated(moderation))) }
        case .settingsChanged(let settings):
            let before = context.projects
            context.adopt(settings)
            guard before != settings.projects else { return }
            let ended = sessions.ids { before[$0.apiKey] != nil && settings.projects[$0.apiKey] == nil }
            for session in ended.sorted(by: { $0.text < $1.text }) { context.tell(.session(session, .projectDeleted)) }
        case .diskMeasured(let disk): context.freeDisk.measured(disk)
        case .restored(let stored, let caller, let callee):
            let call = context.restored(stored)
            for (identity, record) in [(call.caller, caller), (call.callee, callee)] {
                context.tell(.person(identity, .lookedUp(record)))
                context.tell(.person(identity, .call(.restored(call))))
            }
            context.tell(.call(call.id, .restore(call)))
        case .recordingSpace(let isEnough): context.hasRecordingSpace = isEnough
        case .recording(let event): context.tell(.archive(event.archive, .recording(event)))
        case .composed(let archive, let file): context.tell(.archive(archive, .composed(file)))
        case .notComposed(let archive): context.tell(.archive(archive, .composed(nil)))
        case .composingWaits(let archive, let obstacle):
            context.tell(.archive(archive, .composingWaits(obstacle)))
        case .archiveGivenUp(let archive): context.tell(.archive(archive, .givenUp))
        case .archiveNotStored(let archive): context.tell(.archive(archive, .notStored))
        case .broadcast(let report): context.tell(.broadcast(report.broadcast, .reported(report)))
        case .broadcastNotStored(let broadcast): context.tell(.broadcast(broadcast, .notStored))
        case .restoredBroadcast(let record): context.tell(.broadcast(record.id, .restore(record)))
        case .restoredArchive(let record, let hasFiles):
            context.tell(.archive(record.id, .restore(record, hasFiles: hasFiles)))
        case .claimed(let key, let stored): claimed(key, stored)
        case .placed(let key, let tag): placed(key, at: tag)
        case .unplaced(let key): unplaced(key)
        case .placesUnavailable(let key): placesUnavailable(key)
        case .lostPlace(let key): lostPlace(key)
        case .othersCounted(let counts): others = counts
        case .nodeLost(let tag, _): nodeLost(tag)
        case .received(let letter, let tag): received(letter, from: tag)
        case .lettersLost(let tag):
            contactsLost(on: tag, isOver: false)
            distantLost(tag, isOver: false)
        case .mediaCrosses(let nodes):
            context.mediaNodes = nodes
            distantSessions.met(nodes)
            sendBackUnconnected()
        case .relay(let event, let tag): post(event, to: tag)
        case .service(let condition): changeService(to: condition)
        }
    }

    /// Delivers the result of a query to the state machine or client that is waiting for it.
    private mutating func answer(_ question: Question, _ finding: Finding) {
        let request = question.request
        switch (question.query, finding) {
        case (.person(let person, let introduction), _):
            context.tell(.lookup(person, .answered(introduction, finding)))
        case (.callLog, .callLog(let records, let next)):
            let log = CallNotice.Log(re: request.re, calls: LoggedCall.list(records, context.project), next: next)
            context.send(.call(.log(log)), to: request.client)
        case (.callHome(let call), .callHome(let home)):
            context.tell(.person(question.identity, .call(.located(call, home, request.client, re: request.re))))
        case (.wakeable, .push(let isReachable)):
            context.tell(.person(question.identity, .presence(.pushChanged(isReachable: isReachable))))
        // No client is waiting for this answer. If the query failed, keep the previous state.
        case (.wakeable, _): break
        case (_, .push(let isReachable)):
            context.tell(.person(question.identity, .presence(.pushChanged(isReachable: isReachable))))
            context.ok(request)
        case (_, .refused(let error)): context.fail(error, request)
        // The shell's answer has a type that does not fit the question.
        default: context.fail(.internalError, request)
        }
    }
}
