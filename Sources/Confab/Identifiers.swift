import Wire

// The ids of the protocol. The rest of `Wire` is not part of the SDK's interface.

/// The id of a session: at most 255 characters of base64url. An application receives it together with a token.
public typealias SessionID = Wire.SessionID
/// The id of a client connection. It identifies the client to the others in a session.
public typealias ConnectionID = Wire.ConnectionID
/// The id of a stream that a connection publishes in a session.
public typealias StreamID = Wire.StreamID
/// The id of a match of two strangers in the roulette.
public typealias MatchID = Wire.MatchID
/// The public id of a person or a device.
public typealias PersonID = Wire.PersonID
/// The id of a room, which stays the same while the room exists.
public typealias RoomID = Wire.RoomID
/// The id of a file in a room's chat.
public typealias RoomFileID = Wire.RoomFileID
/// The id of an archive, which is a recording of a session.
public typealias ArchiveID = Wire.ArchiveID
/// The id of a live broadcast of a session.
public typealias BroadcastID = Wire.BroadcastID
/// The id of a call between two people. Both people's devices know the call by this id.
public typealias CallID = Wire.CallID
