import Signaling
import Wire

extension OperatorReply {
    var room: RoomDescription? { if case .room(let room) = self { room } else { nil } }
    var list: RoomList? { if case .rooms(let list) = self { list } else { nil } }
    var token: RoomToken? { if case .token(let token) = self { token } else { nil } }
    var errorCode: WireError.Code? { if case .refused(let error) = self { error.code } else { nil } }
}
