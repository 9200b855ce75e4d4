import Cluster
import Wire

/// Events for a session from clients, rooms, matches, calls, operators and the media plane.
public enum SessionEvent: Equatable, Sendable {
    case join(ConnectionID, IdentityID, SessionGrant, re: UInt64)
    case verb(ConnectionID, re: UInt64, SessionVerb)
    case dropped(ConnectionID)
    case returned(ConnectionID)
    case gone(ConnectionID, GoneReason)
    /// The client has received the latest page of the roster.
    case rosterAcknowledged(ConnectionID)
    /// The first client was not sent the message that the second client has joined, because too many of the messages
    /// sent to it are unacknowledged.
    case lagging(ConnectionID, behind: ConnectionID)
    /// The session now serves a match or call. At most `places` members can join with its tokens. `of` is the call to
    /// notify of each join; nil for a match.
    case matchOpened(MatchID, places: Int, of: CallID? = nil)
    /// Sets the two people of the session's current match, with their nodes. Only they may report each other from other nodes.
    case matchSpans(MatchID, [IdentityID: NodeTag])
    /// The match or call is over. Members who joined with its tokens are removed, and the tokens become invalid.
    case matchClosed(MatchID)
    /// A legacy client publishes in this session as long as it is connected. The client's token is bound to this id, and only
    /// one member can join with it.
    case homeOpened(MatchID)
    /// The legacy client has disconnected, so its token becomes invalid.
    case homeClosed(MatchID)
    /// Restores revoked tokens and a mute from storage, after a restart.
    case moderated(SessionModeration)
    /// A member reports their chat partner. The session adds the most recent lines of the text chat to the report and
    /// stores it.
    case report(Report, by: ConnectionID, re: UInt64)
    /// A sample of the camera of a person in this match arrived.
    case sampled(MatchID, IdentityID, [UInt8])
    /// A sample of this person's camera was judged.
    case judged(MatchID, IdentityID, SampleVerdict)
    /// An event from the room that this session belongs to.
    case room(RoomSessionEvent)
    /// An operation for an application's server.
    case operated(SessionOperation, SocketID)
    /// An archive no longer records this session, for this reason; nil after an error.
    case archiveStopped(ArchiveID, RecordingEnd?)
    /// A broadcast of this session has ended.
    case broadcastStopped(BroadcastID)
    /// The session's project was deleted.
    case projectDeleted
    /// Another node of the cluster has this session's place.
    case placeLost
    // From the media plane.
    case subscriptionChanged(SessionNotice.SubscriptionChanged, ConnectionID)
    case streamQuality(SessionNotice.StreamQuality)
    case layersWanted(SessionNotice.LayersWanted, ConnectionID)
    case full(Bool)
    /// `full` from the media plane of another node.
    case fullElsewhere(Bool, at: NodeTag)
    case speaking(StreamID?)
}

/// Events from a room for its session.
public enum RoomSessionEvent: Equatable, Sendable {
    /// A person is in the room with these rights, and may join the session with a token bound to this ID.
    case place(MatchID, RoomRights)
    /// The person is no longer in the room, so the token becomes invalid.
    case placeClosed(MatchID, GoneReason)
    /// Mutes all streams that these people publish now. They may unmute them later.
    case mute(RoomTarget)
    /// Stops the screen sharing of these people.
    case stopScreens(RoomTarget)
    /// Whether only hosts and cohosts may share screens.
    case screens(onlyOfHosts: Bool)
}

/// People in a room's session, identified by the IDs to which their tokens are bound.
public enum RoomTarget: Equatable, Sendable {
    case one(MatchID)
    case everyone(except: MatchID)
}
