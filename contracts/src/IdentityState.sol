// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// The two questions a login asks the identity network's state contract, with answers the test sets.
///
/// Nothing is proved on the way in: whoever may send a transaction publishes. For development chains only.
contract IdentityState {
    struct GistRootInfo {
        uint256 root;
        uint256 replacedByRoot;
        uint256 createdAtTimestamp;
        uint256 replacedAtTimestamp;
        uint256 createdAtBlock;
        uint256 replacedAtBlock;
    }

    struct StateInfo {
        uint256 id;
        uint256 state;
        uint256 replacedByState;
        uint256 createdAtTimestamp;
        uint256 replacedAtTimestamp;
        uint256 createdAtBlock;
        uint256 replacedAtBlock;
    }

    /// How a question about something unknown is answered: the two forms in use, and a fault that is neither.
    enum NotFound {
        Text,
        CustomError,
        Fault
    }

    error RootDoesNotExist();
    error StateDoesNotExist();

    NotFound public notFound;
    uint256 public latestRoot;
    mapping(uint256 root => GistRootInfo) private roots;
    mapping(uint256 id => uint256 state) private latestState;
    mapping(uint256 id => mapping(uint256 state => StateInfo)) private states;

    function getGISTRootInfo(uint256 root) external view returns (GistRootInfo memory info) {
        info = roots[root];
        if (info.createdAtTimestamp == 0) {
            if (notFound == NotFound.CustomError) revert RootDoesNotExist();
            require(notFound == NotFound.Text, "the state contract is paused");
            revert("Root does not exist");
        }
    }

    function getStateInfoByIdAndState(uint256 id, uint256 state) external view returns (StateInfo memory info) {
        info = states[id][state];
        if (info.createdAtTimestamp == 0) {
            if (notFound == NotFound.CustomError) revert StateDoesNotExist();
            require(notFound == NotFound.Text, "the state contract is paused");
            revert("State does not exist");
        }
    }

    /// Makes `root` the current one, in place of the one before.
    function publishRoot(uint256 root) external {
        GistRootInfo storage before = roots[latestRoot];
        if (before.createdAtTimestamp != 0) {
            before.replacedByRoot = root;
            before.replacedAtTimestamp = block.timestamp;
            before.replacedAtBlock = block.number;
        }
        roots[root] = GistRootInfo(root, 0, block.timestamp, 0, block.number, 0);
        latestRoot = root;
    }

    /// Makes `state` the current one of `id`, in place of the one before.
    function publishState(uint256 id, uint256 state) external {
        StateInfo storage before = states[id][latestState[id]];
        if (before.createdAtTimestamp != 0) {
            before.replacedByState = state;
            before.replacedAtTimestamp = block.timestamp;
            before.replacedAtBlock = block.number;
        }
        states[id][state] = StateInfo(id, state, 0, block.timestamp, 0, block.number, 0);
        latestState[id] = state;
    }

    /// Sets what is answered about a root, whatever it was.
    function setRoot(uint256 asked, GistRootInfo calldata info) external {
        roots[asked] = info;
    }

    /// Sets what is answered about a state, whatever it was.
    function setState(uint256 askedId, uint256 asked, StateInfo calldata info) external {
        states[askedId][asked] = info;
    }

    /// Sets how questions about something unknown are answered.
    function setNotFound(NotFound how) external {
        notFound = how;
    }
}
